/* dlsym(): those who ask for one of our calls get the forwarder, everyone else the real dlsym. It is reached by a jump, so that
 * it still sees who called: RTLD_NEXT means "behind the caller". oos_guard_dlsym() may put another handle in place of the caller's. */
    .section .note.GNU-stack,"",%progbits
    .text
    .globl dlsym
    .type dlsym, %function
    .p2align 4
dlsym:
#if defined(__x86_64__)
    .cfi_startproc
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    leaq 16(%rsp), %rdi
    call oos_guard_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    jz 1f
    ret
1:  jmp *oos_guard_dlsym_next(%rip)
    .cfi_endproc
#else
    stp x29, x30, [sp, #-32]!
    stp x0, x1, [sp, #16]
    add x0, sp, #16
    bl oos_guard_dlsym
    mov x9, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    cbz x9, 1f
    mov x0, x9
    ret
1:  adrp x9, oos_guard_dlsym_next
    ldr x9, [x9, :lo12:oos_guard_dlsym_next]
    br x9
#endif
    .size dlsym, .-dlsym
