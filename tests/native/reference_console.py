"""The reference processor and picture unit in one console: three dots, then a processor cycle."""

from __future__ import annotations

from tests.native.reference_cpu import ReferenceCpu
from tests.native.reference_ppu import ReferencePpu

FRAME_CYCLES = 29_781
DMA_CYCLES = 513
_HEADER_BYTES = 16
_PRG_BANK_BYTES = 16 * 1024


class ReferenceController:
    def __init__(self) -> None:
        self.buttons = self._latch = 0
        self._is_strobing = True

    def write(self, value: int) -> None:
        self._is_strobing = value & 1 == 1
        if not self._is_strobing:
            self._latch = self.buttons

    def read(self) -> int:
        if self._is_strobing:
            return 0x40 | self.buttons & 1
        bit = self._latch & 1
        self._latch >>= 1
        return 0x40 | bit


class ReferenceConsole:
    """Takes a valid NROM image; `cycle` is the number of processor cycles since power-up."""

    def __init__(self, cartridge: bytes) -> None:
        prg_end = _HEADER_BYTES + cartridge[4] * _PRG_BANK_BYTES
        prg = cartridge[_HEADER_BYTES:prg_end]
        self._prg = prg * 2 if len(prg) == _PRG_BANK_BYTES else prg
        self.ram = bytearray(2048)
        self.cycle = 0
        self.dma_pages: set[int] = set()
        self.controllers = (ReferenceController(), ReferenceController())
        self.ppu = ReferencePpu(
            cartridge[prg_end:], is_vertical=cartridge[6] & 1 == 1, on_nmi=self._nmi
        )
        self.cpu = ReferenceCpu(self.read, self.write)

    def power_on(self) -> None:
        """As our nes_py core does it: RAM is cleared, the picture unit's memories stay."""
        self.ram[:] = bytes(len(self.ram))
        self.cycle = 0
        self.controllers[0].buttons = 0
        self.ppu.reset()
        self.cpu = ReferenceCpu(self.read, self.write)

    def step(self, buttons: int, frames: int = 1) -> None:
        self.controllers[0].buttons = buttons
        self.run_cycles(frames * FRAME_CYCLES)

    def run_cycles(self, cycles: int) -> None:
        end = self.cycle + cycles
        while self.cycle < end:
            # The cycles in which the processor only waits are run together.
            idle = min(self.cpu.wait, end - self.cycle)
            if idle:
                self._pass(idle)
                continue
            self._pass_dots()
            if self.cpu.wait:  # an NMI came just before the instruction
                self.cpu.wait -= 1
            else:
                self.cpu.execute()

    def _pass(self, cycles: int) -> None:
        self.cycle += cycles
        self.cpu.wait -= cycles
        self.ppu.run(3 * cycles)

    def _pass_dots(self) -> None:
        self.cycle += 1
        self.ppu.run(3)

    def _nmi(self) -> None:
        self.cpu.nmi()

    def read(self, address: int) -> int:
        if address < 0x2000:
            return self.ram[address & 0x7FF]
        if address < 0x4000:
            return self.ppu.read(address & 7)
        if address in (0x4016, 0x4017):
            return self.controllers[address & 1].read()
        return self._prg[address & 0x7FFF] if address >= 0x8000 else 0

    def write(self, address: int, value: int) -> None:
        if address < 0x2000:
            self.ram[address & 0x7FF] = value
        elif address < 0x4000:
            self.ppu.write(address & 7, value)
        elif address == 0x4014:
            self.dma_pages.add(value)
            self.ppu.dma(self._page(value))
            self.cpu.wait += DMA_CYCLES + (self.cycle & 1)
        elif address == 0x4016:
            for controller in self.controllers:
                controller.write(value)

    def _page(self, number: int) -> bytes:
        """What DMA reads: it does not reach registers."""
        if 0x20 <= number < 0x80:
            return bytes(256)
        return bytes(self.read(number << 8 | offset) for offset in range(256))
