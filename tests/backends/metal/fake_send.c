/* objc_msgSend: looks the method up and jumps to it, so that its arguments arrive as they were
 * passed. A message to nil gives 0. */
#include "fake_metal.h"

#if defined(__x86_64__)

/* System V: rdi rsi rdx rcx r8 r9, rax (the number of vector registers) and xmm0 to xmm7 may hold
 * arguments. */
__asm__(".text\n.globl objc_msgSend\n.type objc_msgSend, @function\nobjc_msgSend:\n"
        "    test %rdi, %rdi\n"
        "    je 1f\n"
        "    pushq %rbp\n"
        "    movq %rsp, %rbp\n"
        "    subq $192, %rsp\n"
        "    movq %rdi, (%rsp)\n"
        "    movq %rsi, 8(%rsp)\n"
        "    movq %rdx, 16(%rsp)\n"
        "    movq %rcx, 24(%rsp)\n"
        "    movq %r8, 32(%rsp)\n"
        "    movq %r9, 40(%rsp)\n"
        "    movq %rax, 48(%rsp)\n"
        "    movups %xmm0, 64(%rsp)\n"
        "    movups %xmm1, 80(%rsp)\n"
        "    movups %xmm2, 96(%rsp)\n"
        "    movups %xmm3, 112(%rsp)\n"
        "    movups %xmm4, 128(%rsp)\n"
        "    movups %xmm5, 144(%rsp)\n"
        "    movups %xmm6, 160(%rsp)\n"
        "    movups %xmm7, 176(%rsp)\n"
        "    call fake_find_method@PLT\n"
        "    movq %rax, %r11\n"
        "    movq (%rsp), %rdi\n"
        "    movq 8(%rsp), %rsi\n"
        "    movq 16(%rsp), %rdx\n"
        "    movq 24(%rsp), %rcx\n"
        "    movq 32(%rsp), %r8\n"
        "    movq 40(%rsp), %r9\n"
        "    movq 48(%rsp), %rax\n"
        "    movups 64(%rsp), %xmm0\n"
        "    movups 80(%rsp), %xmm1\n"
        "    movups 96(%rsp), %xmm2\n"
        "    movups 112(%rsp), %xmm3\n"
        "    movups 128(%rsp), %xmm4\n"
        "    movups 144(%rsp), %xmm5\n"
        "    movups 160(%rsp), %xmm6\n"
        "    movups 176(%rsp), %xmm7\n"
        "    leave\n"
        "    jmp *%r11\n"
        "1:\n"
        "    xorl %eax, %eax\n"
        "    xorl %edx, %edx\n"
        "    pxor %xmm0, %xmm0\n"
        "    pxor %xmm1, %xmm1\n"
        "    ret\n"
        ".size objc_msgSend, .-objc_msgSend\n");

#elif defined(__aarch64__)

/* x0 to x7 and v0 to v7 hold arguments, x8 the address of a large struct. */
__asm__(".text\n.globl objc_msgSend\n.type objc_msgSend, %function\nobjc_msgSend:\n"
        "    cbz x0, 1f\n"
        "    stp x29, x30, [sp, #-224]!\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n"
        "    stp x2, x3, [sp, #32]\n"
        "    stp x4, x5, [sp, #48]\n"
        "    stp x6, x7, [sp, #64]\n"
        "    str x8, [sp, #80]\n"
        "    stp q0, q1, [sp, #96]\n"
        "    stp q2, q3, [sp, #128]\n"
        "    stp q4, q5, [sp, #160]\n"
        "    stp q6, q7, [sp, #192]\n"
        "    bl fake_find_method\n"
        "    mov x16, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x2, x3, [sp, #32]\n"
        "    ldp x4, x5, [sp, #48]\n"
        "    ldp x6, x7, [sp, #64]\n"
        "    ldr x8, [sp, #80]\n"
        "    ldp q0, q1, [sp, #96]\n"
        "    ldp q2, q3, [sp, #128]\n"
        "    ldp q4, q5, [sp, #160]\n"
        "    ldp q6, q7, [sp, #192]\n"
        "    ldp x29, x30, [sp], #224\n"
        "    br x16\n"
        "1:\n"
        "    mov x0, #0\n"
        "    mov x1, #0\n"
        "    movi d0, #0\n"
        "    movi d1, #0\n"
        "    ret\n"
        ".size objc_msgSend, .-objc_msgSend\n");

#else

#include <stdlib.h>

void objc_msgSend(void);
void objc_msgSend(void) { abort(); } /* no Apple machine is of this kind */

#endif
