/* gemm_costs.h - measuring coefficients of src/cpu/costs. */
#ifndef GEMM_COSTS_H
#define GEMM_COSTS_H

void print_gemm_costs(void);

#endif
