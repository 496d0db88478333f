// A picture in the making, and what its drawing needs.
#pragma once

#include <cstdint>
#include <cstring>

#include "console.hpp"

namespace nes {

// One byte a pixel: the colour's number, or its gray, whichever `palette_map` was made for.
struct Screen {
  std::uint8_t pixels[kScreenHeight * kScreenWidth];
  bool is_gray;

  explicit Screen(bool gray) { blank(gray); }

  void blank(bool gray) {
    constexpr int kBlackColour = 0x0F, kBlackGray = 0;
    is_gray = gray;
    std::memset(pixels, gray ? kBlackGray : kBlackColour, sizeof pixels);
  }
};

}  // namespace nes
