/* cpu_pause.h - a pause for a thread that waits for another by looking again and again. */
#ifndef SNI_BASE_CPU_PAUSE_H
#define SNI_BASE_CPU_PAUSE_H

static inline void sni_cpu_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
