// Where the reference emulator, nes_py, differs from the hardware or makes a choice, and the game
// shows it. (Smaller deviations are told where they are: BRK, borders of the palette.) All
// published Mario results were made on it, so we follow it.
//
// Each is a macro so that tests/native/test_mutants.py can build the core with one of them changed
// and see that the comparison with nes_py notices.
#pragma once

// One step is a fixed number of CPU cycles, not one picture: the boundary drifts through the
// picture by about 1.5 dots a step and may fall anywhere, also into the interrupt handler.
#ifndef NES_FRAME_CYCLES
#define NES_FRAME_CYCLES 29781
#endif

// On odd frames the pre-render line is one dot shorter while the picture is shown.
#ifndef NES_SKIPS_ODD_DOT
#define NES_SKIPS_ODD_DOT 1
#endif

// Extra cycles of a taken branch into another page; the hardware needs one.
#ifndef NES_BRANCH_CROSSING_CYCLES
#define NES_BRANCH_CROSSING_CYCLES 2
#endif

// INC, DEC and shifts of `absolute,X` pay for crossing a page; on the hardware they never do.
#ifndef NES_MODIFY_CROSSING_CYCLES
#define NES_MODIFY_CROSSING_CYCLES 1
#endif

// An instruction reaches registers of the PPU in its first cycle; on the hardware in its last.
#ifndef NES_IO_IN_FIRST_CYCLE
#define NES_IO_IN_FIRST_CYCLE 1
#endif

// A sprite transfer that begins in an odd cycle takes one cycle more.
#ifndef NES_DMA_PARITY
#define NES_DMA_PARITY 1
#endif

// The vertical blank interrupts at its very dot: the return address is pushed at once, and what
// is left of the running instruction is waited for after that, together with these cycles.
#ifndef NES_INTERRUPT_CYCLES
#define NES_INTERRUPT_CYCLES 7
#endif

// That push also happens when the stretch of play ends within the running instruction.
#ifndef NES_INTERRUPTS_AT_ONCE
#define NES_INTERRUPTS_AT_ONCE 1
#endif

// The status byte lies on the stack in the order of nes_py's bit field, carry in bit 7, and the
// bit that an interrupt sets in it is not the unused one but "interrupts off".
#ifndef NES_STATUS_REVERSED
#define NES_STATUS_REVERSED 1
#endif

// The PPU shows background and sprites from the moment of a reset.
#ifndef NES_RENDERING_AT_RESET
#define NES_RENDERING_AT_RESET 1
#endif

// Work RAM at power-up.
#ifndef NES_POWER_UP_BYTE
#define NES_POWER_UP_BYTE 0
#endif

// Returning to the save slot leaves the controllers as they are.
#ifndef NES_RESTORE_KEEPS_CONTROLLERS
#define NES_RESTORE_KEEPS_CONTROLLERS 1
#endif
