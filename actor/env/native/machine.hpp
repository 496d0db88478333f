// One console with its cartridge: what the Python binding drives.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>

#include "cartridge.hpp"
#include "console.hpp"
#include "screen.hpp"

namespace nes {

// What is drawn while the last frame of a step is played. A picture that was not drawn can still
// be had: that frame is then played once more, from a copy of the console before it.
enum class Look { nothing, gray, colour };

constexpr int kMostCycles = 107'000'000;  // of one stretch of play; their dots fit in 32 bits

struct StateError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Machine {
 public:
  explicit Machine(std::shared_ptr<const Cartridge> cartridge);

  // Work RAM is cleared, CPU and PPU are reset; video memory stays as it was, as in nes_py.
  void power_on();

  // Plays frames of 29,781 CPU cycles each while the first controller holds the buttons.
  void step(std::uint8_t buttons, int frames, Look look);

  // Plays any number of CPU cycles, for tests.
  void run_cycles(int cycles);

  // Runs the PPU alone and draws in colour, for tests.
  void run_ppu(int dots);
  void write_ppu(int reg, std::uint8_t value);
  std::uint8_t read_ppu(int reg);

  // The live console. Writing to its `ram` pokes the game.
  Console& console() { return console_; }

  // The picture as the last step left it: 240 rows of 256 bytes. Colours are numbers from 0 to 63.
  const std::uint8_t* colours();
  const std::uint8_t* grays();

  // The whole state as one portable block of bytes, the same on every host.
  static const int kStateBytes;
  void save(std::uint8_t* out) const;
  // Throws StateError with a reason; the console is then as it was.
  void load(const std::uint8_t* bytes, std::size_t size, bool keep_controllers);

  // Of the picture in colours and the work RAM.
  std::uint64_t frame_hash();

  // The plain path takes no short cut; the fast path must do exactly the same.
  bool is_plain = false;

 private:
  void draw_again(Look look);
  void check_state(const std::uint8_t* bytes, std::size_t size) const;
  void play(Console& console, int cycles, Look look);

  std::shared_ptr<const Cartridge> cartridge_;
  Console console_;
  Console before_;  // as it was when the newest frame began
  Screen screen_{false};
  Look drawn_ = Look::colour;  // a new console has a blank picture
  std::int32_t last_cycles_ = 0;
};

}  // namespace nes
