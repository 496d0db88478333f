// Looks bytes up in a table of 32, many at once where the processor can.
#pragma once

#include <cstdint>

namespace nes {

// out[i] = table[in[i] % 32].
void translate(const std::uint8_t* in, int count, const std::uint8_t table[32], std::uint8_t* out);

}  // namespace nes
