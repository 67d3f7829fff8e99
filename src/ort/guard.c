/* guard.c - ends C++ exceptions of a client's functions, which are to become statuses. This library
 * is written in C and does not link the runtime of C++: a frame of its own has a personality that
 * takes every exception, and the functions that end one are looked up where the client has loaded
 * them. */
#include "ort/guard.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <unwind.h>

#if defined(__x86_64__) || defined(__aarch64__)

/* Calls fn(arg): NULL, or the exception that it ended with. */
void *ort_guard_call(void (*fn)(void *arg), void *arg);
extern const char ort_guard_landing[];
_Unwind_Reason_Code ort_guard_personality(int version, _Unwind_Action actions,
                                          _Unwind_Exception_Class class,
                                          struct _Unwind_Exception *exception,
                                          struct _Unwind_Context *context);

#if defined(__x86_64__)
__asm__(".text\n"
        ".hidden ort_guard_call, ort_guard_landing, ort_guard_personality\n"
        ".globl ort_guard_call, ort_guard_landing\n"
        ".type ort_guard_call, @function\n"
        "ort_guard_call:\n"
        ".cfi_startproc\n"
        ".cfi_personality 0x1b, ort_guard_personality\n"
        "pushq %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset 3, -16\n"
        "movq %rdi, %rax\n"
        "movq %rsi, %rdi\n"
        "call *%rax\n"
        "xorl %eax, %eax\n"
        "ort_guard_landing:\n" /* the exception is in rax */
        "popq %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size ort_guard_call, . - ort_guard_call\n");
#else
__asm__(".text\n"
        ".hidden ort_guard_call\n"
        ".hidden ort_guard_landing\n"
        ".hidden ort_guard_personality\n"
        ".globl ort_guard_call\n"
        ".globl ort_guard_landing\n"
        ".type ort_guard_call, %function\n"
        "ort_guard_call:\n"
        ".cfi_startproc\n"
        ".cfi_personality 0x1b, ort_guard_personality\n"
        "stp x29, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset 29, -16\n"
        ".cfi_offset 30, -8\n"
        "mov x2, x0\n"
        "mov x0, x1\n"
        "blr x2\n"
        "mov x0, xzr\n"
        "ort_guard_landing:\n" /* the exception is in x0 */
        "ldp x29, x30, [sp], #16\n"
        ".cfi_def_cfa_offset 0\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size ort_guard_call, . - ort_guard_call\n");
#endif

/* A function of a library that the process has loaded; NULL: it has not. */
static void *loaded(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = handle ? dlsym(handle, name) : NULL;
    if (handle) dlclose(handle); /* whoever throws keeps it */
    return symbol;
}

/* Copies an address to a pointer to a function. */
#define LOADED(fn, library, name)                  \
    do {                                           \
        void *symbol_ = loaded((library), (name)); \
        memcpy(&(fn), &symbol_, sizeof symbol_);   \
    } while (0)

_Unwind_Reason_Code ort_guard_personality(int version, _Unwind_Action actions,
                                          _Unwind_Exception_Class class,
                                          struct _Unwind_Exception *exception,
                                          struct _Unwind_Context *context) {
    void (*set_register)(struct _Unwind_Context *, int, _Unwind_Word);
    void (*set_address)(struct _Unwind_Context *, _Unwind_Ptr);
    (void)version, (void)class;
    LOADED(set_register, "libgcc_s.so.1", "_Unwind_SetGR");
    LOADED(set_address, "libgcc_s.so.1", "_Unwind_SetIP");
    if (!set_register || !set_address || actions & _UA_FORCE_UNWIND) return _URC_CONTINUE_UNWIND;
    if (actions & _UA_SEARCH_PHASE) return _URC_HANDLER_FOUND;
    if (!(actions & _UA_HANDLER_FRAME)) return _URC_CONTINUE_UNWIND;
    set_register(context, 0, (_Unwind_Word)(uintptr_t)exception);
    set_address(context, (_Unwind_Ptr)(uintptr_t)ort_guard_landing);
    return _URC_INSTALL_CONTEXT;
}

/* As a handler of all exceptions does it; without the runtime of C++ the exception says how. */
static void end_exception(struct _Unwind_Exception *exception) {
    void *(*begin)(void *);
    void (*end)(void);
    LOADED(begin, "libstdc++.so.6", "__cxa_begin_catch");
    LOADED(end, "libstdc++.so.6", "__cxa_end_catch");
    if (begin && end) {
        begin(exception);
        end();
    } else if (exception->exception_cleanup) {
        exception->exception_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, exception);
    }
}

bool ort_guarded(void (*fn)(void *arg), void *arg) {
    struct _Unwind_Exception *exception = ort_guard_call(fn, arg);
    if (exception) end_exception(exception);
    return !exception;
}

#else

bool ort_guarded(void (*fn)(void *arg), void *arg) {
    fn(arg);
    return true;
}

#endif
