/* gelu.c - GELU as exporters spell it out: x/2 (1 + erf(x / sqrt 2)), and its approximation by
 * tanh, with the factors in any place. */
#include "opt/rules/rules.h"

#define ROOT "{Div(x, 1.4142135) | Mul(x, 0.70710678)}"
/* 1 + erf, or 1 - erf of the number with the other sign. */
#define ERF                                                                                 \
    "{Add(Erf(" ROOT "), 1) | Sub(1, Erf({Mul(Neg(x), 0.70710678) | Mul(x, -0.70710678) | " \
    "Neg(" ROOT ") | Div(Neg(x), 1.4142135)}))}"
#define HALF "{Mul(x, 0.5) | Div(x, 2)}"

#define CUBE "{Pow(x, 3) | Mul(x, Mul(x, x)) | Mul(x, Pow(x, 2))}"
#define BENT     \
    "{Mul(" CUBE \
    ", 0.044715) | Mul(Mul(Mul(x, 0.044715), x), x) | Mul(Mul(x, 0.044715), Mul(x, x))}"
#define SQUARE "Add({Mul(Mul(x, 0.044715), x) | Mul({Mul(x, x) | Pow(x, 2)}, 0.044715)}, 1)"
#define TANH                                                                             \
    "Add(Tanh({Mul(Add(x, " BENT "), 0.7978846) | Mul(Mul(x, 0.7978846), " SQUARE ") | " \
    "Mul(x, Mul(" SQUARE ", 0.7978846))}), 1)"

const sni_rule sni_rules_gelu[] = {
    {"gelu-erf-half-last", "Mul(Mul(x, " ERF "), 0.5)", "Gelu(x)"},
    {"gelu-erf-half-first", "Mul(" HALF ", " ERF ")", "Gelu(x)"},
    {"gelu-erf-half-inside", "Mul(x, Mul(" ERF ", 0.5))", "Gelu(x)"},
    {"gelu-erf-half-and-half", "Mul(x, Add(Mul(Erf(" ROOT "), 0.5), 0.5))", "Gelu(x)"},
    {"gelu-erf-by-2", "Div(Mul(x, " ERF "), 2)", "Gelu(x)"},
    {"gelu-tanh-half-last", "Mul(Mul(x, " TANH "), 0.5)", "Gelu<approximate = \"tanh\">(x)"},
    {"gelu-tanh-half-first", "Mul(" HALF ", " TANH ")", "Gelu<approximate = \"tanh\">(x)"},
    {"gelu-tanh-half-inside", "Mul(x, Mul(" TANH ", 0.5))", "Gelu<approximate = \"tanh\">(x)"},
    {"gelu-tanh-by-2", "Div(Mul(x, " TANH "), 2)", "Gelu<approximate = \"tanh\">(x)"},
    {0},
};
