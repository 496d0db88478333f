#include "translate.hpp"

#if defined(NES_PORTABLE)
#elif defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define NES_HAS_SSSE3 1
#elif defined(__aarch64__)
#define NES_HAS_NEON 1
#include <arm_neon.h>
#endif

namespace nes {
namespace {

void translate_one_by_one(const std::uint8_t* in, int count, const std::uint8_t table[32],
                          std::uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = table[in[i] & 31];
}

#if NES_HAS_SSSE3

// Compiled for newer processors than the rest, and called only where they are.
__attribute__((target("ssse3"))) void translate_by_shuffle(const std::uint8_t* in, int count,
                                                           const std::uint8_t table[32],
                                                           std::uint8_t* out) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16));
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i places = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    const __m128i in_table = _mm_and_si128(places, _mm_set1_epi8(15));
    // Bit 4 of each byte chooses between the halves.
    const __m128i is_high =
        _mm_cmpgt_epi8(_mm_and_si128(places, _mm_set1_epi8(16)), _mm_setzero_si128());
    const __m128i found = _mm_or_si128(_mm_andnot_si128(is_high, _mm_shuffle_epi8(low, in_table)),
                                       _mm_and_si128(is_high, _mm_shuffle_epi8(high, in_table)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), found);
  }
  translate_one_by_one(in + i, count - i, table, out + i);
}

#endif

}  // namespace

void translate(const std::uint8_t* in, int count, const std::uint8_t table[32], std::uint8_t* out) {
#if NES_HAS_SSSE3
  static const bool can_shuffle = __builtin_cpu_supports("ssse3");
  if (can_shuffle) return translate_by_shuffle(in, count, table, out);
#elif NES_HAS_NEON
  const uint8x16x2_t both = {{vld1q_u8(table), vld1q_u8(table + 16)}};
  int done = 0;
  for (; done + 16 <= count; done += 16)
    vst1q_u8(out + done, vqtbl2q_u8(both, vandq_u8(vld1q_u8(in + done), vdupq_n_u8(31))));
  return translate_one_by_one(in + done, count - done, table, out + done);
#endif
  translate_one_by_one(in, count, table, out);
}

}  // namespace nes
