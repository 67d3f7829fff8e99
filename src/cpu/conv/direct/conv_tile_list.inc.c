/* conv_tile_list.inc.c - TILE(width, pixels) for every tile of a tier: as many sums as registers
 * hold besides the weights of one channel and an input. */
TILE(1, 1)
TILE(1, 2)
TILE(1, 3)
TILE(1, 4)
TILE(1, 5)
TILE(1, 6)
#if LANES >= 8
TILE(1, 7)
TILE(1, 8)
TILE(1, 9)
TILE(1, 10)
TILE(1, 11)
TILE(1, 12)
TILE(2, 1)
TILE(2, 2)
TILE(2, 3)
TILE(2, 4)
TILE(2, 5)
TILE(2, 6)
#endif
#if LANES == 16
TILE(1, 13)
TILE(1, 14)
TILE(2, 7)
TILE(2, 8)
TILE(2, 9)
TILE(2, 10)
TILE(2, 11)
TILE(2, 12)
TILE(2, 13)
TILE(2, 14)
#endif
#if WIDE && LANES >= 8
TILE(3, 1)
TILE(3, 2)
TILE(3, 3)
TILE(3, 4)
#endif
#if WIDE && LANES == 16
TILE(3, 5)
TILE(3, 6)
TILE(3, 7)
TILE(3, 8)
TILE(3, 9)
TILE(4, 1)
TILE(4, 2)
TILE(4, 3)
TILE(4, 4)
TILE(4, 5)
TILE(4, 6)
TILE(4, 7)
#endif
