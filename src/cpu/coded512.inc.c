/* coded512.inc.c - reading coded groups with AVX-512. TARGET, NAME and EXPAND(e, mask, more) say
 * with which instructions. */

TARGET static inline __attribute__((always_inline)) void
NAME(read_group)(reader *r, vf v[SNI_CODED_ROWS][NV]) {
    UNROLL
    for (int q = 0; q < QUADS; q++) {
        __m512i codes = codes_of(r->group, q);
        uint64_t rest = _mm512_cmpeq_epi8_mask(codes, _mm512_set1_epi8(ESCAPE));
        __m512i e = EXPAND(_mm512_add_epi8(codes, r->base), rest, r->more);
        r->more += __builtin_popcountll(rest);
        if (r->more > r->end) r->more = r->end;
        join_quad(r->group, q, e, &v[q * 4 / NV][0]);
    }
    r->group += GROUP;
}

#include "cpu/coded_run.inc.c"
