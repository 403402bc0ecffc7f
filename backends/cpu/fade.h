/* Denormal numbers: below 1.2e-38 in f32, 2.2e-308 in f64. Where gradients vanish, an optimiser's
 * states become denormal within some thousand steps, and each then costs a hundred times as much as
 * another number. In the steps of all rules denormals count as zero, if the processor can do that
 * (x86-64). */
#ifndef WB_CPU_FADE_H
#define WB_CPU_FADE_H

#if defined(__x86_64__)
/* From here on they count as zero in this thread. Returns the argument for wb_fade_end. */
static inline unsigned wb_fade_begin(void) {
    enum { DENORMALS_ARE_ZEROS = 0x0040, FLUSH_TO_ZERO = 0x8000 };
    const unsigned saved = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(saved | DENORMALS_ARE_ZEROS | FLUSH_TO_ZERO);
    return saved;
}
static inline void wb_fade_end(unsigned saved) { __builtin_ia32_ldmxcsr(saved); }
#else
static inline unsigned wb_fade_begin(void) { return 0; }
static inline void wb_fade_end(unsigned saved) { (void)saved; }
#endif

#endif
