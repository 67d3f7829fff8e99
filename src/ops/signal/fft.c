/* fft.c - Fourier transforms: radix 2 where the length is a power of two, otherwise as a
 * convolution with a chirp (Bluestein's algorithm), which radix 2 computes. */
#include "ops/signal/fft.h"

#include "base/checked.h"
#include "base/threadpool.h"
#include "ops/core/wide.h"

#include <math.h>

#define LONGEST ((int64_t)1 << 30)
#define POLL_POINTS ((int64_t)1 << 18) /* of a thread between two polls */

static const double pi = 3.14159265358979323846;

typedef struct plan {
    const sni_kernel *kernel; /* asked now and then whether to go on */
    int64_t n, m;             /* length of a transform; of the power of two that is used */
    const double *roots;      /* m / 2 complex: e^(-2 pi j i / m) */
    const double *chirp;      /* n complex: e^(-pi j i^2 / n); NULL if n is m */
    const double *filter;     /* m complex: transform of the chirp's conjugate, both ways round */
} plan;

/* Long transforms leave their work undone when the run is to stop: sni_fft_run() then fails. Asked
 * at every point (or butterfly) `i`. */
static bool stops_at(const plan *p, int64_t i) {
    return i % POLL_POINTS == POLL_POINTS - 1 && sni_stopping(p->kernel);
}

/* ---- Radix 2 ---- */

static void bit_reverse(double *x, int64_t m) {
    for (int64_t i = 1, j = 0; i < m; i++) {
        int64_t bit = m >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j |= bit;
        if (i >= j) continue;
        for (int c = 0; c < 2; c++) {
            double t = x[2 * i + c];
            x[2 * i + c] = x[2 * j + c];
            x[2 * j + c] = t;
        }
    }
}

static void radix2(const plan *p, double *x) {
    bit_reverse(x, p->m);
    for (int64_t half = 1; half < p->m; half *= 2) {
        int64_t step = p->m / (2 * half);
        if (p->m >= POLL_POINTS && sni_stopping(p->kernel)) return;
        for (int64_t start = 0; start < p->m; start += 2 * half) {
            double *a = x + 2 * start, *b = a + 2 * half;
            for (int64_t i = 0; i < half; i++) {
                const double *w = p->roots + 2 * i * step;
                double re = b[2 * i] * w[0] - b[2 * i + 1] * w[1];
                double im = b[2 * i] * w[1] + b[2 * i + 1] * w[0];
                b[2 * i] = a[2 * i] - re;
                b[2 * i + 1] = a[2 * i + 1] - im;
                a[2 * i] += re;
                a[2 * i + 1] += im;
            }
        }
    }
}

/* out = a * b, or a * conj(b). out may be a. */
static void multiply(double *out, const double *a, const double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double re = a[2 * i] * b[2 * i] - a[2 * i + 1] * b[2 * i + 1];
        double im = a[2 * i] * b[2 * i + 1] + a[2 * i + 1] * b[2 * i];
        out[2 * i] = re;
        out[2 * i + 1] = im;
    }
}

/* x has n complex numbers, work m. */
static void transform(const plan *p, double *x, double *work) {
    if (!p->chirp) {
        radix2(p, x);
        return;
    }
    multiply(work, x, p->chirp, p->n);
    for (int64_t i = 2 * p->n; i < 2 * p->m; i++) work[i] = 0;
    radix2(p, work);
    multiply(work, work, p->filter, p->m);
    for (int64_t i = 0; i < p->m; i++) work[2 * i + 1] = -work[2 * i + 1]; /* inverse by conj */
    radix2(p, work);
    double scale = 1 / (double)p->m;
    for (int64_t i = 0; i < p->n; i++) {
        work[2 * i] *= scale;
        work[2 * i + 1] *= -scale;
    }
    multiply(x, work, p->chirp, p->n);
}

/* ---- Plans ---- */

static sn_status complex_array(sni_kernel *k, int64_t n, double **out) {
    void *p = NULL;
    SN_TRY(sni_scratch_array(k, n, 2 * sizeof(double), &p));
    *out = p;
    return SN_OK;
}

static sn_status make_chirp(sni_kernel *k, plan *p) {
    double *chirp = NULL, *filter = NULL;
    SN_TRY(complex_array(k, p->n, &chirp));
    SN_TRY(complex_array(k, p->m, &filter));
    for (int64_t i = 0; i < p->n; i++) {
        if (stops_at(p, i)) return sni_poll(k);
        double angle = pi * (double)(i * i % (2 * p->n)) / (double)p->n;
        chirp[2 * i] = cos(angle);
        chirp[2 * i + 1] = -sin(angle);
    }
    for (int64_t i = 0; i < 2 * p->m; i++) filter[i] = 0;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t mirror = i ? p->m - i : 0;
        filter[2 * i] = filter[2 * mirror] = chirp[2 * i];
        filter[2 * i + 1] = filter[2 * mirror + 1] = -chirp[2 * i + 1];
    }
    radix2(p, filter);
    p->chirp = chirp;
    p->filter = filter;
    return sni_poll(k);
}

static sn_status make_plan(sni_kernel *k, int64_t n, plan *p) {
    if (n < 1 || n > LONGEST)
        return SNI_KERNEL_FAIL(k, "a transform of length %lld is not possible", (long long)n);
    bool power = (n & (n - 1)) == 0;
    *p = (plan){.kernel = k, .n = n, .m = 1};
    while (p->m < (power ? n : 2 * n - 1)) p->m *= 2;
    double *roots = NULL;
    SN_TRY(complex_array(k, p->m / 2 + 1, &roots));
    for (int64_t i = 0; i < p->m / 2; i++) {
        if (stops_at(p, i)) return sni_poll(k);
        double angle = 2 * pi * (double)i / (double)p->m;
        roots[2 * i] = cos(angle);
        roots[2 * i + 1] = -sin(angle);
    }
    p->roots = roots;
    return power ? SN_OK : make_chirp(k, p);
}

/* ---- Lines ---- */

typedef struct line_job {
    const sni_fft_job *job;
    const plan *p;
    double *memory; /* per part: n complex numbers of buffer, m of work */
    int64_t pieces;
    int64_t first, last; /* the lines to transform now */
} line_job;

static void run_pieces(void *ctx, int64_t begin, int64_t end) {
    const line_job *l = ctx;
    const sni_fft_job *job = l->job;
    for (int64_t piece = begin; piece < end; piece++) {
        double *buffer = l->memory + 2 * piece * (l->p->n + l->p->m);
        int64_t share = (l->last - l->first + l->pieces - 1) / l->pieces;
        int64_t first = l->first + piece * share;
        for (int64_t i = first; i < first + share && i < l->last; i++) {
            job->load(job->ctx, i, buffer);
            transform(l->p, buffer, buffer + 2 * l->p->n);
            job->store(job->ctx, i, buffer);
        }
    }
}

sn_status sni_fft_run(sni_kernel *k, const sni_fft_job *job) {
    plan p;
    if (job->lines == 0) return SN_OK;
    SN_TRY(make_plan(k, job->n, &p));
    line_job l = {.job = job, .p = &p};
    l.pieces = k->threads > 0 ? k->threads : sni_threads_available();
    if (l.pieces > job->lines || job->n * job->lines < 4096) l.pieces = 1;
    SN_TRY(complex_array(k, l.pieces * (p.n + p.m), &l.memory));
    int64_t batch = l.pieces * (POLL_POINTS / p.m + 1);
    for (; l.first < job->lines; l.first = l.last) {
        SN_TRY(sni_poll(k));
        l.last = job->lines - l.first > batch ? l.first + batch : job->lines;
        sni_parallel_for(k->threads, l.pieces, 1, run_pieces, &l);
    }
    return sni_poll(k);
}
