// A quick 64-bit checksum with the same value on every host. It finds accidents, not attackers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nes {

inline std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Independent lanes, because a multiplication takes several cycles until it is done.
inline std::uint64_t checksum(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
  constexpr int kLanes = 8;
  constexpr int kLaneBytes = 16;
  const auto mix = [](std::uint64_t lane, std::uint64_t first, std::uint64_t second) {
    lane ^= first;
    return ((lane << 29 | lane >> 35) + second) * kOdd;
  };
  std::uint64_t lanes[kLanes];
  for (int lane = 0; lane < kLanes; ++lane)
    lanes[lane] = kOdd * (2u * static_cast<unsigned>(lane) + 1);
  std::size_t at = 0;
  for (; at + kLaneBytes * kLanes <= size; at += kLaneBytes * kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::uint8_t* const pair = bytes + at + kLaneBytes * lane;
      lanes[lane] = mix(lanes[lane], word_at(pair), word_at(pair + 8));
    }
  std::uint64_t total = size;
  for (; at < size; ++at) total = mix(total, bytes[at], 1);
  for (const std::uint64_t lane : lanes) total = mix(total, lane, 1);
  return total ^ total >> 32;
}

}  // namespace nes
