// Draws spans of a line. Pixels are first places in the palette (0 to 15 background, 16 to 31
// sprites), for a whole tile at a time, and then become colours or grays all at once.
#include <algorithm>
#include <cstring>

#include "colours.hpp"
#include "ppu_clock.hpp"
#include "translate.hpp"

namespace nes {
namespace {

// A span may begin and end in the middle of a tile, and of a sprite.
constexpr int kMargin = 16;
constexpr int kSpanBytes = kMargin + kScreenWidth + kMargin;
constexpr std::uint64_t kEveryByte = 0x0101010101010101u;
constexpr std::uint64_t kTaken = 0x40 * kEveryByte;  // an earlier sprite has this pixel

std::uint64_t load(const std::uint8_t* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

void store(std::uint8_t* bytes, std::uint64_t word) { std::memcpy(bytes, &word, sizeof word); }

// 0xFF in each byte that has the bit (0 to 7), else 0.
std::uint64_t bytes_with(std::uint64_t word, int bit) { return (word >> bit & kEveryByte) * 0xFF; }

// 0xFF in each byte whose pixel is not transparent.
std::uint64_t opaque(std::uint64_t pixels) { return bytes_with(pixels | pixels >> 1, 0); }

// 0xFF in the bytes from one to another.
std::uint64_t bytes_between(int first, int last) {
  const std::uint64_t below_last = last == 8 ? ~0ull : (1ull << (8 * last)) - 1;
  return below_last & ~((1ull << (8 * first)) - 1);
}

}  // namespace

void PpuClock::draw_pixels(int from_x, int to_x) {
  std::uint8_t span[kSpanBytes];
  std::uint8_t* const tiles = span + kMargin - 8;
  std::uint8_t* const pixels = tiles + (ppu_.fine_x + from_x) % 8;
  if (ppu_.shows_background())
    draw_background(from_x, to_x, tiles);
  else
    std::memset(span, 0, sizeof span);
  if (from_x < 8 && !ppu_.shows_left_background())
    std::memset(pixels, 0, static_cast<std::size_t>(std::min(8, to_x) - from_x));
  if (ppu_.shows_sprites()) draw_sprites(from_x, to_x, pixels);
  translate(pixels, to_x - from_x, palette_map(),
            screen_->pixels + ppu_.line * kScreenWidth + from_x);
}

void PpuClock::draw_background(int from_x, int to_x, std::uint8_t* tiles) {
  const int count = ((ppu_.fine_x + from_x) % 8 + to_x - from_x + 7) / 8;
  // Eight lines show the same row of tiles.
  if (!(tile_row_.start == (ppu_.v & 0x0FFF) && tile_row_.count >= count)) find_tiles(count);
  const int row = ppu_.v >> 12 & 7;
  for (int tile = 0; tile < count; ++tile)
    store(tiles + tile * 8, tile_row_.pixels[tile][row] | tile_row_.palettes[tile]);
}

void PpuClock::find_tiles(int count) {
  tile_row_.start = ppu_.v & 0x0FFF;
  tile_row_.count = count;
  // The row ends in the name table to the right.
  const int in_first = std::min(count, 32 - (ppu_.v & 0x1F));
  find_tiles_in_table(ppu_.v, 0, in_first);
  find_tiles_in_table(tiles_right(ppu_.v, in_first), in_first, count);
}

void PpuClock::find_tiles_in_table(std::uint16_t v, int from, int to) {
  const std::uint64_t* const page = cartridge_.rows.data() + (ppu_.control & 0x10 ? 0x800 : 0);
  const std::uint8_t* const table =
      ppu_.vram + cartridge_.vram_offset(static_cast<std::uint16_t>(0x2000 | (v & 0x0C00)));
  const std::uint8_t* const tiles = table + (v & 0x03E0);
  const std::uint8_t* const attributes = table + 0x03C0 + (v >> 4 & 0x38);
  const int row_shift = v >> 4 & 4;
  int column = v & 0x1F;
  for (int tile = from; tile < to; ++tile, ++column) {
    const unsigned palette = attributes[column >> 2] >> (row_shift | (column & 2)) & 3u;
    tile_row_.pixels[tile] = page + tiles[column] * 8;
    tile_row_.palettes[tile] = (palette << 2) * kEveryByte;
  }
}

void PpuClock::draw_sprites(int from_x, int to_x, std::uint8_t* pixels) {
  const int first_x = ppu_.shows_left_sprites() ? from_x : std::max(from_x, 8);
  // The first sprite of the list that has a pixel keeps it, even one that the background hides.
  for (int place = 0; place < ppu_.sprites.count; ++place)
    draw_sprite(ppu_.sprites.index[place], first_x, to_x, {pixels, from_x});
}

// All eight pixels are worked on at once, also those before the part that is drawn: the line has
// room for them.
void PpuClock::draw_sprite(int index, int from_x, int to_x, LinePart part) {
  const int left = ppu_.oam[index * 4 + 3];
  const int first = std::max(from_x - left, 0), last = std::min(to_x - left, 8);
  if (first >= last) return;
  std::uint8_t* const at = part.pixels + (left - part.from_x);
  const std::uint64_t sprite = sprite_row(index, ppu_.line);
  const std::uint64_t below = load(at);
  const std::uint64_t background = opaque(below);
  const std::uint64_t own = opaque(sprite) & bytes_between(first, last) & ~bytes_with(below, 6);
  const int attributes = ppu_.oam[index * 4 + 2];
  if (index == 0 && (own & background) && ppu_.shows_background()) ppu_.sprite0_hit = 1;
  const std::uint64_t shown = attributes & 0x20 ? own & ~background : own;
  const std::uint64_t colours = sprite | (0x10u | (attributes & 3u) << 2) * kEveryByte;
  store(at, (below & ~shown) | (colours & shown) | (own & kTaken));
}

const std::uint8_t* PpuClock::palette_map() {
  if (!has_palette_map_) {
    for (int place = 0; place < kPaletteBytes; ++place) {
      // The first colour of each palette is transparent: the backdrop shines through.
      const int colour = ppu_.palette[place & 3 ? place : 0] & 0x3F;
      palette_map_[place] =
          screen_->is_gray ? kColourGray[colour] : static_cast<std::uint8_t>(colour);
    }
    has_palette_map_ = true;
  }
  return palette_map_;
}

}  // namespace nes
