from __future__ import annotations

import pytest

from actor.env.native._console import Console
from tests.native.assembler import Assembler
from tests.native.reference_console import ReferenceConsole
from tests.native.synthetic_cartridge import CHR_BYTES, cartridge

ORIGIN = 0xC000
# The vertical blank begins in cycle 27,508, after 342 dots and 241 lines of 341.
BORDER = range(27_495, 27_530)


def image() -> bytes:
    """Interrupts are on, and every instruction of the loop is a long one."""
    code = Assembler(ORIGIN)
    code.ops(
        """
        LDA imm $80
        STA abs $2000
        loop:
        INC absx $0300
        JMP abs loop
        handler:
        INC zp $20
        RTI
        """
    )
    handler = code.address_of("handler")
    return cartridge(code.bytes(), bytes(CHR_BYTES), vectors=(handler, ORIGIN, ORIGIN))


@pytest.mark.parametrize("is_plain", [True, False])
def test_an_interrupt_in_the_last_instruction_is_pushed_before_play_stops(is_plain: bool) -> None:
    reference = ReferenceConsole(image())
    reference.run_cycles(BORDER.start - 1)
    pushed = set()

    for cycles in BORDER:
        reference.run_cycles(1)
        console = Console(image())
        console.plain = is_plain
        console.run_cycles(cycles)
        assert bytes(console.ram) == bytes(reference.ram), f"after {cycles} cycles"
        pushed.add(console.ram[0x1FC] != 0)

    assert pushed == {False, True}
