/* gemm_sizes.inc.c - TILE(rows) for every number of rows that the tier has a tile for. */
TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if LANES > 4
TILE(5)
TILE(6)
#endif
#if LANES > 8
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)
#endif
