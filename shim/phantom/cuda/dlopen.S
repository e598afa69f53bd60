/* dlopen(): who opens a library that has a stand-in by its path gets the stand-in (dlopen.c). The real one is reached by a jump, so
 * that it still sees who called: a library is looked for along the caller's own path. */
    .section .note.GNU-stack,"",%progbits
    .text
    .globl dlopen
    .type dlopen, %function
    .p2align 4
dlopen:
#if defined(__x86_64__)
    .cfi_startproc
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    call oos_dlopen_name
    popq %rsi
    .cfi_adjust_cfa_offset -8
    movq %rax, %rdi
    jmp *oos_dlopen_next(%rip)
    .cfi_endproc
#else
    stp x29, x30, [sp, #-32]!
    str x1, [sp, #16]
    bl oos_dlopen_name
    ldr x1, [sp, #16]
    ldp x29, x30, [sp], #32
    adrp x9, oos_dlopen_next
    ldr x9, [x9, :lo12:oos_dlopen_next]
    br x9
#endif
    .size dlopen, .-dlopen
