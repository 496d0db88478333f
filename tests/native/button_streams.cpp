// Random buttons, pictures and save states on the core alone, for runs under sanitizers.
// Usage: button_streams CARTRIDGE STATES STREAMS SEED
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "checksum.hpp"
#include "machine.hpp"
#include "shrink.hpp"

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

class Streams {
 public:
  Streams(const Bytes& cartridge, Bytes states, unsigned seed)
      : machine_(nes::Cartridge::parse(cartridge.data(), cartridge.size())),
        states_(std::move(states)),
        dice_(seed) {}

  void play_one() {
    const int stages = static_cast<int>(states_.size()) / size_;
    machine_.load(states_.data() + below(stages) * size_, static_cast<std::size_t>(size_),
                  below(2));
    machine_.is_plain = below(8) == 0;
    if (below(4) == 0) forge();
    // Mostly short; now and then long enough to die, to begin again or to reach another area.
    for (int turn = below(128) ? 2 + below(6) : 400; turn > 0; --turn) {
      machine_.step(static_cast<std::uint8_t>(below(256)), 1 + below(4),
                    static_cast<nes::Look>(below(3)));
      if (below(4) == 0) look();
      if (below(8) == 0)
        machine_.console().ram[below(2048)] = static_cast<std::uint8_t>(below(256));
    }
  }

  int refused = 0, accepted = 0;

 private:
  int below(int limit) { return static_cast<int>(dice_() % static_cast<unsigned>(limit)); }

  void look() {
    nes::Shrink shrink(1 + below(200), 1 + below(256), below(40));
    Bytes small(256 * 240);
    shrink.write(machine_.grays(), small.data());
    static_cast<void>(machine_.frame_hash());
  }

  // A state with a few wrong bytes and the right checksum must be refused or be playable.
  void forge() {
    Bytes state(static_cast<std::size_t>(size_));
    machine_.save(state.data());
    for (int flips = 1 + below(4); flips > 0; --flips)
      state[static_cast<std::size_t>(20 + below(below(2) ? 120 : size_ - 28))] ^=
          static_cast<std::uint8_t>(1 + below(255));
    const std::uint64_t sum = nes::checksum(state.data(), state.size() - 8);
    std::memcpy(state.data() + state.size() - 8, &sum, sizeof sum);
    try {
      machine_.load(state.data(), state.size(), false);
      ++accepted;
    } catch (const nes::StateError&) {
      ++refused;
    }
  }

  nes::Machine machine_;
  Bytes states_;
  std::mt19937 dice_;
  const int size_ = nes::Machine::kStateBytes;
};

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  Streams streams(read_file(words[1]), read_file(words[2]),
                  static_cast<unsigned>(std::atoi(words[4])));
  const int wanted = std::atoi(words[3]);
  for (int i = 0; i < wanted; ++i) streams.play_one();
  std::printf("%d streams, forged states: %d refused, %d played\n", wanted, streams.refused,
              streams.accepted);
  return 0;
}
