#include "shrink.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

// __GLIBC__ comes with the headers above. Compiled twice, for old and for newer processors; the
// dynamic linker chooses where it can.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define NES_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define NES_WIDE
#endif

namespace nes {
namespace {

// Turns eight rows of sixteen-bit numbers into columns.
#if defined(__has_builtin) && !defined(NES_PORTABLE)
#if __has_builtin(__builtin_shufflevector)
#define NES_HAS_SHUFFLE 1
#endif
#endif

#if NES_HAS_SHUFFLE

typedef std::uint16_t Eight __attribute__((vector_size(16)));

Eight low_halves(Eight a, Eight b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
Eight high_halves(Eight a, Eight b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

// Three rounds of interleaving rows that are four apart.
void turn(const std::uint16_t* rows, std::uint16_t (*columns)[8]) {
  for (int x = 0; x < kScreenWidth; x += 8) {
    Eight block[8];
    for (int row = 0; row < 8; ++row) std::memcpy(&block[row], rows + row * kScreenWidth + x, 16);
    for (int round = 0; round < 3; ++round) {
      Eight mixed[8];
      for (int row = 0; row < 4; ++row) {
        mixed[2 * row] = low_halves(block[row], block[row + 4]);
        mixed[2 * row + 1] = high_halves(block[row], block[row + 4]);
      }
      std::memcpy(block, mixed, sizeof block);
    }
    std::memcpy(columns + x, block, sizeof block);
  }
}

// The means of eight areas. Told in vectors, because the compiler would otherwise find the wrong
// loop to make wide.
inline void mean_of_taps(const std::uint16_t (*column)[8], const std::uint16_t* weights, int taps,
                         float half, float area, std::uint8_t* means) {
  typedef std::int32_t Wide __attribute__((vector_size(32)));
  typedef float Floats __attribute__((vector_size(32)));
  typedef std::uint8_t Bytes __attribute__((vector_size(8)));
  Wide total = {};
  for (int tap = 0; tap < taps; ++tap) {
    Eight numbers;
    std::memcpy(&numbers, column + tap, sizeof numbers);
    total += __builtin_convertvector(numbers, Wide) * std::int32_t{weights[tap]};
  }
  const Floats means_of_area = (__builtin_convertvector(total, Floats) + half) / area;
  const Bytes bytes = __builtin_convertvector(__builtin_convertvector(means_of_area, Wide), Bytes);
  std::memcpy(means, &bytes, sizeof bytes);
}

#else

inline void mean_of_taps(const std::uint16_t (*column)[8], const std::uint16_t* weights, int taps,
                         float half, float area, std::uint8_t* means) {
  for (int row = 0; row < 8; ++row) {
    std::int32_t total = 0;
    for (int tap = 0; tap < taps; ++tap) total += std::int32_t{weights[tap]} * column[tap][row];
    means[row] = static_cast<std::uint8_t>((static_cast<float>(total) + half) / area);
  }
}

void turn(const std::uint16_t* rows, std::uint16_t (*columns)[8]) {
  for (int row = 0; row < 8; ++row)
    for (int x = 0; x < kScreenWidth; ++x) columns[x][row] = rows[row * kScreenWidth + x];
}

#endif

}  // namespace

// In units in which both a pixel and a small pixel have whole lengths: a pixel is `to / divisor`
// long and a small one `from / divisor`.
Shrink::Covers Shrink::covers(int from, int to) {
  const int divisor = std::gcd(from, to);
  const int pixel = to / divisor, small = from / divisor;
  Covers covers;
  // A small pixel that begins inside a pixel may reach into one more.
  covers.taps = (small + pixel - 2) / pixel + 1;
  for (int start = 0; start < to * small; start += small) {
    const int first = start / pixel;
    covers.first.push_back(first);
    for (int at = first; at < first + covers.taps; ++at) {
      const int overlap = std::min(start + small, (at + 1) * pixel) - std::max(start, at * pixel);
      covers.weights.push_back(static_cast<std::uint16_t>(std::max(overlap, 0)));
    }
  }
  return covers;
}

Shrink::Shrink(int height, int width, int crop_top)
    : height_(height), width_(width), crop_top_(crop_top) {
  const int rows = kScreenHeight - crop_top;
  if (crop_top < 0 || height < 1 || width < 1 || height > rows || width > kScreenWidth)
    throw std::invalid_argument("a picture of 256 x " + std::to_string(rows) +
                                " pixels cannot become one of " + std::to_string(width) + " x " +
                                std::to_string(height));
  down_ = covers(rows, height);
  across_ = covers(kScreenWidth, width);
  area_ = static_cast<float>(rows / std::gcd(rows, height) *
                             (kScreenWidth / std::gcd(kScreenWidth, width)));
}

void Shrink::write(const std::uint8_t* grays, std::uint8_t* out) {
  for (int first = 0; first < height_; first += kRows) {
    const int rows = std::min(kRows, height_ - first);
    std::uint16_t sums[kRows * kScreenWidth] = {};
    for (int row = 0; row < rows; ++row) add_rows(first + row, grays, sums + row * kScreenWidth);
    turn(sums, columns_);
    add_columns(rows, out + first * width_);
  }
}

// At most 240 x 255: it fits in 16 bits, which the compiler adds many at a time.
NES_WIDE void Shrink::add_rows(int row, const std::uint8_t* grays, std::uint16_t* sums) const {
  const std::uint16_t* weights = down_.weights.data() + row * down_.taps;
  const int first = crop_top_ + down_.first[static_cast<std::size_t>(row)];
  const int last = std::min(first + down_.taps, kScreenHeight);
  std::fill(sums, sums + kScreenWidth, std::uint16_t{0});
  for (int y = first; y < last; ++y) {
    const std::uint16_t weight = *weights++;
    const std::uint8_t* pixels = grays + y * kScreenWidth;
    for (int x = 0; x < kScreenWidth; ++x)
      sums[x] = static_cast<std::uint16_t>(sums[x] + weight * pixels[x]);
  }
}

NES_WIDE void Shrink::add_columns(int rows, std::uint8_t* out) const {
  const std::uint16_t* weights = across_.weights.data();
  const int* firsts = across_.first.data();
  const int taps = across_.taps, width = width_;
  const float area = area_, half = static_cast<float>(static_cast<int>(area_) / 2);
  for (int x = 0; x < width; ++x) {
    std::uint8_t means[kRows];
    mean_of_taps(columns_ + firsts[x], weights, taps, half, area, means);
    weights += taps;
    for (int row = 0; row < rows; ++row) out[row * width + x] = means[row];
  }
}

}  // namespace nes
