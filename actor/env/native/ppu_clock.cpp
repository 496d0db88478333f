#include "ppu_clock.hpp"

#include <algorithm>

namespace nes {
namespace {

constexpr int kDotsPerLine = 341;
constexpr int kVblankLine = 241;
constexpr int kLastLine = 260;
constexpr int kPictureDots = kScreenWidth;
constexpr int kFirstVerticalDot = 281;
constexpr int kLastVerticalDot = 304;
constexpr std::uint16_t kHorizontalBits = 0x041F;
constexpr std::uint16_t kVerticalBits = 0x7BE0;

void copy_bits(std::uint16_t& to, std::uint16_t from, std::uint16_t bits) {
  to = static_cast<std::uint16_t>((to & ~bits) | (from & bits));
}

std::uint16_t one_line_down(std::uint16_t v) {
  if ((v & 0x7000) != 0x7000) return static_cast<std::uint16_t>(v + 0x1000);
  v &= static_cast<std::uint16_t>(~0x7000);
  const int row = v >> 5 & 0x1F;
  if (row == 29) return static_cast<std::uint16_t>((v & ~0x03E0) ^ 0x0800);
  if (row == 31) return static_cast<std::uint16_t>(v & ~0x03E0);
  return static_cast<std::uint16_t>(v + 0x20);
}

bool contains(int from, int to, int dot) { return from <= dot && dot <= to; }

}  // namespace

int PpuClock::last_dot() const {
  const bool is_short =
      NES_SKIPS_ODD_DOT && ppu_.line == -1 && !ppu_.is_even_frame && ppu_.shows_both();
  // The mask may have changed between the two dots that can be the last.
  return std::max<int>(is_short ? kDotsPerLine - 1 : kDotsPerLine, ppu_.dot);
}

int PpuClock::dots_to_vblank() const {
  const int left_in_line = last_dot() - ppu_.dot + 1;
  if (ppu_.line < kVblankLine)
    return left_in_line + kDotsPerLine * (kVblankLine - 1 - ppu_.line) + 1;
  if (ppu_.line == kVblankLine && ppu_.dot <= 1) return 1;
  // The parity flips before the next picture.
  const bool is_short = NES_SKIPS_ODD_DOT && ppu_.is_even_frame && ppu_.shows_both();
  return left_in_line + kDotsPerLine * (kLastLine - ppu_.line) + kDotsPerLine - is_short +
         kDotsPerLine * kVblankLine + 1;
}

int PpuClock::next_status_change() const {
  const int line = ppu_.line;
  const int left_in_line = last_dot() - ppu_.dot + 1;
  const bool is_in_vblank = line > kVblankLine || (line == kVblankLine && ppu_.dot > 1);
  if (is_in_vblank) return done_ + left_in_line + kDotsPerLine * (kLastLine - line) + 1;
  if (line == -1 && ppu_.dot <= 1) return done_ + 1;

  const int vblank = done_ + dots_to_vblank();
  if (line >= kScreenHeight || ppu_.sprite0_hit || !ppu_.shows_both()) return vblank;
  // No register is written until then, so the addresses of the lines to come are known.
  if (line >= 0 && ppu_.dot <= kPictureDots && may_hit_sprite0(line)) {
    const int x = sprite0_hit_x(ppu_.v, line, std::max(ppu_.dot - 1, 0), kScreenWidth);
    if (x >= 0) return done_ + x + 2 - ppu_.dot;
  }
  std::uint16_t v = address_after_line();
  for (int next = line + 1; next < kScreenHeight; ++next) {
    if (may_hit_sprite0(next)) {
      const int x = sprite0_hit_x(v, next, 0, kScreenWidth);
      if (x >= 0) return done_ + left_in_line + kDotsPerLine * (next - line - 1) + x + 1;
    }
    v = one_line_down(v);
    copy_bits(v, ppu_.t, kHorizontalBits);
  }
  return vblank;
}

// What `v` will be when the next line begins, while background and sprites are shown.
std::uint16_t PpuClock::address_after_line() const {
  std::uint16_t v = ppu_.v;
  if (ppu_.line >= 0 && ppu_.dot <= kPictureDots + 1) v = one_line_down(v);
  if (ppu_.dot <= kPictureDots + 2) copy_bits(v, ppu_.t, kHorizontalBits);
  if (ppu_.line == -1 && ppu_.dot <= kLastVerticalDot) copy_bits(v, ppu_.t, kVerticalBits);
  return v;
}

void PpuClock::advance(int dots) {
  done_ += dots;
  while (dots > 0) {
    dots -= skip_lines(dots);
    if (dots == 0) return;
    const int last = last_dot();
    const int count = std::min(dots, last - ppu_.dot + 1);
    run_dots(ppu_.dot, ppu_.dot + count - 1);
    dots -= count;
    ppu_.dot = static_cast<std::int16_t>(ppu_.dot + count);
    if (ppu_.dot > last) end_line();
  }
}

// Whole lines in which nothing is drawn and sprite 0 cannot be hit. Returns the dots it took.
int PpuClock::skip_lines(int dots) {
  const int whole = dots / kDotsPerLine;
  if (screen_ || ppu_.dot != 1 || whole == 0 || ppu_.line < 0 || ppu_.line >= kScreenHeight)
    return 0;
  int lines = std::min(whole, kScreenHeight - ppu_.line);
  if (!ppu_.sprite0_hit && ppu_.shows_both()) {
    int free_lines = 0;
    while (free_lines < lines && !may_hit_sprite0(ppu_.line + free_lines)) ++free_lines;
    lines = free_lines;
  }
  if (lines == 0) return 0;
  if (ppu_.shows_both()) {
    for (int line = 0; line < lines; ++line) ppu_.v = one_line_down(ppu_.v);
    copy_bits(ppu_.v, ppu_.t, kHorizontalBits);
  } else if (ppu_.shows_background()) {
    for (int line = 0; line < lines; ++line) ppu_.v = one_line_down(tiles_right(ppu_.v, 32));
  }
  ppu_.line = static_cast<std::int16_t>(ppu_.line + lines);
  find_sprites(ppu_.line - 1);
  return lines * kDotsPerLine;
}

bool PpuClock::may_hit_sprite0(int line) const {
  // The first line shows the list that the last line of the picture before has left.
  if (line == std::max<int>(ppu_.line, 0)) return ppu_.sprites.count && ppu_.sprites.index[0] == 0;
  const int offset = line - 1 - ppu_.oam[0];
  return ppu_.oam_address < 4 && offset >= 0 && offset < ppu_.sprite_height();
}

void PpuClock::run_dots(int from, int to) {
  if (ppu_.line >= 0 && ppu_.line < kScreenHeight) {
    run_picture_dots(from, to);
  } else if (ppu_.line == kVblankLine) {
    if (contains(from, to, 1)) ppu_.vblank = 1;
  } else if (ppu_.line == -1) {
    if (contains(from, to, 1)) ppu_.vblank = ppu_.sprite0_hit = 0;
    if (!ppu_.shows_both()) return;
    if (contains(from, to, kPictureDots + 2)) copy_bits(ppu_.v, ppu_.t, kHorizontalBits);
    if (from <= kLastVerticalDot && to >= kFirstVerticalDot)
      copy_bits(ppu_.v, ppu_.t, kVerticalBits);
  }
}

void PpuClock::run_picture_dots(int from, int to) {
  if (from <= kPictureDots) run_pixels(from - 1, std::min(to, kPictureDots));
  if (ppu_.shows_background() && contains(from, to, kPictureDots + 1))
    ppu_.v = one_line_down(ppu_.v);
  if (ppu_.shows_both() && contains(from, to, kPictureDots + 2))
    copy_bits(ppu_.v, ppu_.t, kHorizontalBits);
}

void PpuClock::run_pixels(int from_x, int to_x) {
  if (screen_)
    draw_pixels(from_x, to_x);
  else if (!ppu_.sprite0_hit && ppu_.shows_both())
    check_sprite0(from_x, to_x);
  if (ppu_.shows_background())
    ppu_.v = tiles_right(ppu_.v, (ppu_.fine_x + to_x) / 8 - (ppu_.fine_x + from_x) / 8);
}

void PpuClock::end_line() {
  ppu_.dot = 1;
  if (ppu_.line >= 0 && ppu_.line < kScreenHeight) find_sprites(ppu_.line);
  if (ppu_.line < kLastLine) {
    ++ppu_.line;
  } else {
    ppu_.line = -1;
    ppu_.is_even_frame = !ppu_.is_even_frame;
  }
}

// The sprites that the line after `line` shows.
void PpuClock::find_sprites(int line) {
  if (screen_) {
    if (!has_sorted_sprites_) sort_sprites();
    ppu_.sprites = sorted_sprites_[line];
    return;
  }
  const int height = ppu_.sprite_height();
  SpriteList list;
  for (int index = ppu_.oam_address / 4; index < 64 && list.count < kSpritesPerLine; ++index) {
    const int row = line - ppu_.oam[index * 4];
    if (row >= 0 && row < height) list.index[list.count++] = static_cast<std::uint8_t>(index);
  }
  ppu_.sprites = list;
}

void PpuClock::sort_sprites() {
  for (SpriteList& list : sorted_sprites_) list = SpriteList{};
  const int height = ppu_.sprite_height();
  for (int index = ppu_.oam_address / 4; index < 64; ++index) {
    const int first = ppu_.oam[index * 4];
    for (int line = first; line < std::min(first + height, kScreenHeight); ++line) {
      SpriteList& list = sorted_sprites_[line];
      if (list.count < kSpritesPerLine) list.index[list.count++] = static_cast<std::uint8_t>(index);
    }
  }
  has_sorted_sprites_ = true;
}

// The eight pixels of a sprite in a line, mirrored as it asks, 0 where it is transparent.
std::uint64_t PpuClock::sprite_row(int index, int line) const {
  const std::uint8_t* sprite = ppu_.oam + index * 4;
  const int tile = sprite[1], attributes = sprite[2];
  const int height = ppu_.sprite_height();
  // Negative in the first line, which shows the sprites of the last: C's remainder keeps the sign.
  int row = (line - static_cast<std::uint8_t>(sprite[0] + 1)) % height;
  if (attributes & 0x80) row ^= height - 1;
  const int address = height == 8
                          ? tile * 16 + row + (ppu_.control & 0x08 ? 0x1000 : 0)
                          : (tile >> 1) * 32 + ((row & 7) | (row & 8) << 1) + (tile & 1) * 0x1000;
  const auto low = static_cast<std::uint16_t>(address);
  const auto high = static_cast<std::uint16_t>(address + 8);
  const std::uint64_t pixels = height == 16 || row >= 0 ? cartridge_.pixels(low)
                                                        : spread_planes(cartridge_.character(low),
                                                                        cartridge_.character(high));
  return attributes & 0x40 ? reversed(pixels) : pixels;
}

std::uint64_t PpuClock::background_row(std::uint16_t v) const {
  const std::uint8_t tile =
      ppu_.vram[cartridge_.vram_offset(static_cast<std::uint16_t>(0x2000 | (v & 0x0FFF)))];
  const int page = ppu_.control & 0x10 ? 0x1000 : 0;
  return cartridge_.pixels(static_cast<std::uint16_t>(page + tile * 16 + (v >> 12 & 7)));
}

// Without drawing: does sprite 0 meet the background in these pixels of the line?
void PpuClock::check_sprite0(int from_x, int to_x) {
  if (may_hit_sprite0(ppu_.line) && sprite0_hit_x(ppu_.v, ppu_.line, from_x, to_x) >= 0)
    ppu_.sprite0_hit = 1;
}

// The first of these pixels in which it does, or -1; `v` is the address at `from_x`.
int PpuClock::sprite0_hit_x(std::uint16_t v, int line, int from_x, int to_x) const {
  const int left = ppu_.oam[3];
  const bool clips = !ppu_.shows_left_background() || !ppu_.shows_left_sprites();
  const int first = std::max({from_x, left, clips ? 8 : 0});
  const int last = std::min(to_x, left + 8);
  if (first >= last) return -1;
  const std::uint64_t sprite = sprite_row(0, line);
  for (int x = first; x < last; ++x) {
    if (!(sprite >> (8 * (x - left)) & 3)) continue;
    const int tiles = (ppu_.fine_x + x) / 8 - (ppu_.fine_x + from_x) / 8;
    const std::uint64_t row = background_row(tiles_right(v, tiles));
    if (row >> (8 * ((ppu_.fine_x + x) % 8)) & 3) return x;
  }
  return -1;
}

}  // namespace nes
