/* A stand-in for what NVRTC and hipRTC know by themselves: kernels in CUDA C and HIP, compiled as
 * C++17 and run on the CPU, each thread of a block as a fiber (tests/support/cuda_cpp.h, which
 * defines CUDA_CPP_WARP). No header is included, as there is none at run time. What passes here may
 * still be refused by the real compilers: this shows what a text computes, that its threads meet
 * at barriers, and with CUDA_CPP_HAZARDS that these are where memory of a block wants them. */

/* ---- between the object and who runs it ---- */

struct uint3 {
    unsigned x, y, z;
};
using dim3 = uint3;

extern "C" {
struct {
    uint3 thread, block, block_size, grid_size;
} cuda_cpp_places;
void (*cuda_cpp_meet)(int place);
void (*cuda_cpp_meet_part)(int size, int place);
extern char __start_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_cuda_shared[] __attribute__((weak, visibility("hidden")));
char *cuda_cpp_shared[2] = {__start_cuda_shared, __stop_cuda_shared};
void *memcpy(void *, const void *, __SIZE_TYPE__);
}

/* A kernel: its parameters, and one thread of it. */
struct cuda_cpp_entry {
    const char *name;
    int count;
    const unsigned short *sizes;
    const bool *are_pointers;
    void (*item)(void **parameters);
};

template <class T> inline constexpr bool cuda_cpp_is_pointer = false;
template <class T> inline constexpr bool cuda_cpp_is_pointer<T *> = true;
template <int... number> struct cuda_cpp_numbers {};

template <auto kernel> struct cuda_cpp_kernel;
template <class... A, void (*kernel)(A...)> struct cuda_cpp_kernel<kernel> {
    static constexpr unsigned short sizes[] = {sizeof(A)..., 0};
    static constexpr bool are_pointers[] = {cuda_cpp_is_pointer<A>..., false};
    template <int... i> static void call(void **parameters, cuda_cpp_numbers<i...>) {
        kernel(*(A *)parameters[i]...);
    }
    static void item(void **parameters) {
        call(parameters, cuda_cpp_numbers<__integer_pack(sizeof...(A))...>());
    }
    static constexpr cuda_cpp_entry entry(const char *name) {
        return {name, sizeof...(A), sizes, are_pointers, item};
    }
};

/* ---- threads ---- */

#define threadIdx cuda_cpp_places.thread
#define blockIdx  cuda_cpp_places.block
#define blockDim  cuda_cpp_places.block_size
#define gridDim   cuda_cpp_places.grid_size
#define warpSize  CUDA_CPP_WARP

static inline int cuda_cpp_lane() {
    return (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

#ifdef CUDA_CPP_HAZARDS
#include "hazards.h"
#else
#define cuda_cpp_passed(size) (void)(size)
#endif

static inline void cuda_cpp_wait(int place, int size) {
    const uint3 self = threadIdx;
    if (size)
        cuda_cpp_meet_part(size, place);
    else
        cuda_cpp_meet(place);
    threadIdx = self;
    cuda_cpp_passed(size);
}
#define __syncthreads()                 cuda_cpp_wait(__LINE__, 0)
#define __syncwarp(...)                 cuda_cpp_wait(__LINE__, CUDA_CPP_WARP)
#define __threadfence()                 (void)0
#define __builtin_amdgcn_wave_barrier() __syncwarp()
#define __threadfence_block()           (void)0

/* The value of the thread that is number `from` in its warp; its own, where there is none. */
template <class T> static T cuda_cpp_shuffle(T value, int from, int place) {
    static unsigned long long values[1024];
    static_assert(sizeof value <= sizeof *values);
    const int self = cuda_cpp_lane(), first = self - self % CUDA_CPP_WARP;
    memcpy(&values[self], &value, sizeof value);
    cuda_cpp_wait(place, CUDA_CPP_WARP);
    if (from >= 0 && from < CUDA_CPP_WARP) memcpy(&value, &values[first + from], sizeof value);
    cuda_cpp_wait(place, CUDA_CPP_WARP);
    return value;
}
#define cuda_cpp_in_warp          (cuda_cpp_lane() % CUDA_CPP_WARP)
#define __shfl(v, lane)           cuda_cpp_shuffle((v), (lane), __LINE__)
#define __shfl_xor(v, mask)       cuda_cpp_shuffle((v), cuda_cpp_in_warp ^ (mask), __LINE__)
#define __shfl_down(v, d)         cuda_cpp_shuffle((v), cuda_cpp_in_warp + (int)(d), __LINE__)
#define __shfl_up(v, d)           cuda_cpp_shuffle((v), cuda_cpp_in_warp - (int)(d), __LINE__)
#define __shfl_sync(m, v, lane)   __shfl(v, lane)
#define __shfl_xor_sync(m, v, x)  __shfl_xor(v, x)
#define __shfl_down_sync(m, v, d) __shfl_down(v, d)
#define __shfl_up_sync(m, v, d)   __shfl_up(v, d)

/* ---- the language ---- */

#define __global__
#define __device__
#define __host__
#define __constant__    static const
#define __shared__      static __attribute__((section("cuda_shared")))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

#define CUDA_CPP_VECTOR(T, name, bytes)                                                            \
    struct __align__(bytes / 2) name##2 {                                                          \
        T x, y;                                                                                    \
    };                                                                                             \
    struct __align__(bytes) name##4 {                                                              \
        T x, y, z, w;                                                                              \
    };                                                                                             \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                              \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CUDA_CPP_VECTOR(float, float, 16)
CUDA_CPP_VECTOR(int, int, 16)
CUDA_CPP_VECTOR(unsigned, uint, 16)
CUDA_CPP_VECTOR(unsigned short, ushort, 8)
CUDA_CPP_VECTOR(unsigned char, uchar, 4)

/* Threads take turns at barriers only: nothing comes between these reads and writes. */
template <class T> static T cuda_cpp_replace(T *p, T value) {
    const T old = *p;
    *p = value;
    return old;
}
#define CUDA_CPP_ATOMIC(name, expression)                                                          \
    template <class T, class U> static T atomic##name(T *p, U other) {                             \
        const T old = *p, value = (T)other;                                                        \
        return cuda_cpp_replace(p, (T)(expression));                                               \
    }
CUDA_CPP_ATOMIC(Exch, value)
CUDA_CPP_ATOMIC(Add, old + value)
CUDA_CPP_ATOMIC(Sub, old - value)
CUDA_CPP_ATOMIC(Max, old > value ? old : value)
CUDA_CPP_ATOMIC(Min, old < value ? old : value)
CUDA_CPP_ATOMIC(Or, old | value)
CUDA_CPP_ATOMIC(And, old &value)
template <class T> static T atomicCAS(T *p, T expected, T value) {
    return cuda_cpp_replace(p, *p == expected ? value : *p);
}

/* ---- numbers ---- */

template <class To, class From> static inline To cuda_cpp_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
#define __float_as_uint(x)      cuda_cpp_bits<unsigned>((float)(x))
#define __fmul_rn(x, y)         ((float)(x) * (float)(y))
#define __dmul_rn(x, y)         ((double)(x) * (double)(y))
#define __float_as_int(x)       cuda_cpp_bits<int>((float)(x))
#define __uint_as_float(u)      cuda_cpp_bits<float>((unsigned)(u))
#define __int_as_float(i)       cuda_cpp_bits<float>((int)(i))
#define __double_as_longlong(x) cuda_cpp_bits<long long>((double)(x))
#define __longlong_as_double(i) cuda_cpp_bits<double>((long long)(i))

#define __umulhi(a, b) ((unsigned)((unsigned long long)(unsigned)(a) * (unsigned)(b) >> 32))

#define __ldg(p)           (*(p))
#define __fmaf_rn(a, b, c) fmaf(a, b, c)

extern "C" {
#define CUDA_CPP_1(name)                                                                           \
    float name##f(float);                                                                          \
    double name(double)
#define CUDA_CPP_2(name)                                                                           \
    float name##f(float, float);                                                                   \
    double name(double, double)
CUDA_CPP_1(sqrt);
CUDA_CPP_1(floor);
CUDA_CPP_1(ceil);
CUDA_CPP_1(trunc);
CUDA_CPP_1(fabs);
CUDA_CPP_1(rint);
CUDA_CPP_1(sin);
CUDA_CPP_1(cos);
CUDA_CPP_1(exp);
CUDA_CPP_1(log);
CUDA_CPP_1(expm1);
CUDA_CPP_1(log1p);
CUDA_CPP_1(tanh);
CUDA_CPP_1(erf);
CUDA_CPP_1(exp2);
CUDA_CPP_1(log2);
CUDA_CPP_2(pow);
CUDA_CPP_2(fmod);
CUDA_CPP_2(fmax);
CUDA_CPP_2(fmin);
float fmaf(float, float, float);
double fma(double, double, double);
}
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }

/* ---- instructions of PTX: asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)) comes as a call ---- */

static inline void ptx_cvt_f32_f16(float &x, unsigned short h) {
    x = (float)cuda_cpp_bits<_Float16>(h);
}
static inline void ptx_cvt_rn_f16_f32(unsigned short &h, float x) {
    h = cuda_cpp_bits<unsigned short>((_Float16)x);
}
static inline void ptx_cvt_rn_bf16_f32(unsigned short &h, float x) {
    const unsigned u = __float_as_uint(x);
    h = x != x ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
