// Makes the small gray picture that agents see, exactly: integers only, rounded once.
#pragma once

#include <cstdint>
#include <vector>

#include "console.hpp"

namespace nes {

// The mean of the area that each small pixel covers, with the parts of pixels at its edges. The
// same as ScreenShrinker of actor/env/preprocess.py, bit for bit.
class Shrink {
 public:
  // Throws std::invalid_argument for sizes that are no reduction.
  Shrink(int height, int width, int crop_top);

  bool is_for(int height, int width, int crop_top) const {
    return height == height_ && width == width_ && crop_top == crop_top_;
  }

  // `grays` are the 240 rows of the whole screen, `out` height x width.
  void write(const std::uint8_t* grays, std::uint8_t* out);

 private:
  // Which pixels each small pixel covers, and how much of them.
  struct Covers {
    int taps = 0;  // weights of each, also where the last is 0
    std::vector<int> first;
    std::vector<std::uint16_t> weights;
  };

  // As many rows as the compiler handles in one go.
  static constexpr int kRows = 8;

  static Covers covers(int from, int to);
  void add_rows(int row, const std::uint8_t* grays, std::uint16_t* sums) const;
  void add_columns(int rows, std::uint8_t* out) const;

  int height_, width_, crop_top_;
  // Of a small pixel, in the units of both weights. All sums are whole numbers below 2^24, exact in
  // a float. Their quotient is at least 1 / (240 * 256) below the next whole number unless it is
  // one, and rounding moves it by less than half of that: cutting it off is exact.
  float area_;
  Covers down_, across_;
  std::uint16_t columns_[2 * kScreenWidth][kRows] = {};  // sums over rows, turned; then zeros
};

}  // namespace nes
