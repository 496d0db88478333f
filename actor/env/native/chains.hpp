// Instructions that programs often write one after another: they run without a jump between them.
//
// A chain may end in a branch or a jump, but not contain one.
#pragma once

// clang-format off
#define NES_EQUAL_BRANCHES(X, first) X(first, bne_target) X(first, beq_target)
#define NES_SIGN_BRANCHES(X, first) X(first, bpl_target) X(first, bmi_target)
#define NES_ORDER_BRANCHES(X, first) X(first, bcc_target) X(first, bcs_target)
#define NES_EQUAL_BRANCHES_3(X, first, second)                                                  \
  X(first, second, bne_target) X(first, second, beq_target)
#define NES_ORDER_BRANCHES_3(X, first, second)                                                  \
  X(first, second, bcc_target) X(first, second, bcs_target)
#define NES_LOOP_BRANCHES_3(X, first, second)                                                   \
  X(first, second, bne_target) X(first, second, bpl_target)

// Look at a value and branch.
#define NES_LOAD_AND_BRANCH(X)                                                                  \
  NES_EQUAL_BRANCHES(X, lda_ram) NES_SIGN_BRANCHES(X, lda_ram) NES_EQUAL_BRANCHES(X, lda_ram_x) \
  NES_SIGN_BRANCHES(X, lda_ram_x) NES_EQUAL_BRANCHES(X, lda_zero_x)                             \
  NES_SIGN_BRANCHES(X, lda_zero_x) NES_EQUAL_BRANCHES(X, lda_ram_y)                             \
  NES_EQUAL_BRANCHES(X, lda_indirect_y) NES_EQUAL_BRANCHES(X, ldy_ram)                          \
  NES_EQUAL_BRANCHES(X, ldx_ram)

// Compare or mask it first.
#define NES_COMPARE_AND_BRANCH(X)                                                               \
  NES_EQUAL_BRANCHES(X, cmp_value) NES_ORDER_BRANCHES(X, cmp_value)                             \
  NES_SIGN_BRANCHES(X, cmp_value)                                                               \
  NES_EQUAL_BRANCHES(X, cmp_ram) NES_ORDER_BRANCHES(X, cmp_ram) NES_EQUAL_BRANCHES(X, cpx_value) \
  NES_ORDER_BRANCHES(X, cpx_value) NES_EQUAL_BRANCHES(X, cpy_value)                             \
  NES_ORDER_BRANCHES(X, cpy_value)                                                              \
  NES_EQUAL_BRANCHES(X, mask_value) NES_ORDER_BRANCHES(X, lsr_implied)                          \
  NES_ORDER_BRANCHES(X, asl_implied)

#define NES_LOAD_COMPARE_BRANCH(X)                                                              \
  NES_EQUAL_BRANCHES_3(X, lda_ram, cmp_value) NES_ORDER_BRANCHES_3(X, lda_ram, cmp_value)       \
  NES_EQUAL_BRANCHES_3(X, lda_ram_x, cmp_value) NES_ORDER_BRANCHES_3(X, lda_ram_x, cmp_value)   \
  NES_EQUAL_BRANCHES_3(X, lda_zero_x, cmp_value) NES_ORDER_BRANCHES_3(X, lda_zero_x, cmp_value) \
  NES_EQUAL_BRANCHES_3(X, lda_ram, mask_value)

// Count and go round.
#define NES_COUNT_AND_BRANCH(X)                                                                 \
  NES_EQUAL_BRANCHES(X, dex_implied) NES_SIGN_BRANCHES(X, dex_implied)                          \
  NES_EQUAL_BRANCHES(X, dey_implied) NES_SIGN_BRANCHES(X, dey_implied)                          \
  NES_EQUAL_BRANCHES(X, inx_implied) NES_EQUAL_BRANCHES(X, iny_implied)                         \
  NES_EQUAL_BRANCHES(X, dec_ram) NES_SIGN_BRANCHES(X, dec_ram)

#define NES_STORE_COUNT_BRANCH(X)                                                               \
  NES_LOOP_BRANCHES_3(X, sta_ram_x, dex_implied) NES_LOOP_BRANCHES_3(X, sta_ram_x, inx_implied) \
  NES_LOOP_BRANCHES_3(X, sta_ram_y, dey_implied) NES_LOOP_BRANCHES_3(X, sta_ram_y, iny_implied)

// Move a value.
#define NES_LOADS_OF_A(X, second)                                                               \
  X(lda_value, second) X(lda_ram, second) X(lda_ram_x, second) X(lda_ram_y, second)             \
  X(lda_zero_x, second) X(lda_program_x, second) X(lda_program_y, second) X(lda_indirect_y, second)
#define NES_STORES_OF_A(X, first)                                                               \
  X(first, sta_ram) X(first, sta_ram_x) X(first, sta_ram_y) X(first, sta_zero_x)
#define NES_LOAD_AND_STORE(X)                                                                   \
  NES_LOADS_OF_A(X, sta_ram) NES_LOADS_OF_A(X, sta_ram_x) NES_LOADS_OF_A(X, sta_ram_y)          \
  NES_LOADS_OF_A(X, sta_zero_x) X(pla_implied, sta_ram) X(ldx_value, stx_ram)                   \
  X(ldy_value, sty_ram) X(sta_ram, lda_value) X(sta_ram, lda_ram) X(sta_ram_x, lda_ram)         \
  X(sta_ram_x, lda_value) X(sta_zero_x, lda_value) X(sta_zero_x, lda_ram)                       \
  X(ldx_value, lda_value) X(ldy_value, lda_value) X(ldx_value, lda_ram) X(ldy_value, lda_ram)   \
  X(ldy_ram, lda_ram_y) X(ldy_ram, lda_program_y) X(ldx_ram, lda_ram_x) X(ldx_ram, lda_zero_x)  \
  X(tay_implied, lda_program_y) X(tay_implied, lda_ram_y) X(tax_implied, lda_program_x)

// Calculate.
#define NES_CARRY_AND_ADD(X)                                                                    \
  X(clc_implied, adc_value) X(clc_implied, adc_ram) X(clc_implied, adc_program_y)               \
  X(sec_implied, sbc_value) X(sec_implied, sbc_ram) NES_LOADS_OF_A(X, clc_implied)              \
  NES_LOADS_OF_A(X, sec_implied) NES_LOADS_OF_A(X, lsr_implied) NES_LOADS_OF_A(X, asl_implied)  \
  NES_LOADS_OF_A(X, mask_value) NES_LOADS_OF_A(X, pha_implied) NES_LOADS_OF_A(X, tay_implied)    \
  NES_STORES_OF_A(X, adc_value) NES_STORES_OF_A(X, adc_ram) NES_STORES_OF_A(X, sbc_value)       \
  NES_STORES_OF_A(X, sbc_ram) NES_STORES_OF_A(X, mask_value) NES_STORES_OF_A(X, ora_value)       \
  X(adc_zero_x, sta_zero_x) X(sbc_zero_x, sta_ram) X(adc_ram_x, sta_ram_x)                      \
  X(tya_implied, clc_implied) X(txa_implied, clc_implied)
#define NES_CARRY_ADD_STORE(X)                                                                  \
  X(clc_implied, adc_value, sta_ram) X(clc_implied, adc_value, sta_ram_x)                       \
  X(clc_implied, adc_value, sta_ram_y) X(clc_implied, adc_value, sta_zero_x)                    \
  X(clc_implied, adc_ram, sta_ram) X(clc_implied, adc_ram, sta_ram_x)                           \
  X(sec_implied, sbc_value, sta_ram) X(sec_implied, sbc_ram, sta_ram)

// Pass it to somebody else.
#define NES_AND_JUMP(X)                                                                         \
  X(lda_value, jsr_target) X(lda_ram, jsr_target) X(ldx_value, jsr_target)                      \
  X(ldx_ram, jsr_target) X(ldy_value, jsr_target) X(sta_ram, jsr_target) X(stx_ram, jsr_target) \
  X(lda_value, jmp_target) X(ldy_value, jmp_target) X(sta_ram, jmp_target)

#define NES_PAIRS(X)                                                                            \
  NES_LOAD_AND_BRANCH(X) NES_COMPARE_AND_BRANCH(X) NES_COUNT_AND_BRANCH(X)                      \
  NES_LOAD_AND_STORE(X) NES_CARRY_AND_ADD(X) NES_AND_JUMP(X)
#define NES_TRIPLES(X)                                                                          \
  NES_LOAD_COMPARE_BRANCH(X) NES_STORE_COUNT_BRANCH(X) NES_CARRY_ADD_STORE(X)
// clang-format on
