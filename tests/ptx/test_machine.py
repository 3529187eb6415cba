"""The machine that runs PTX: threads that part and meet, exchanges, memory of every width; and each thing that it has to refuse."""
import numpy as np
import pytest
from ptx_text import PtxError, read_kernels
from written_ptx import run_body

NUMBERS = np.random.default_rng(1).integers(0, 1 << 32, 128, np.uint32)
TAKE, GIVE = "ld.global.u32 %r5, [%rd4];\n", "\nst.global.u32 [%rd5], %r6;"


def collatz_steps(n):
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def test_threads_part_in_loops_and_meet_again():
    body = TAKE + """
    mov.u32 %r6, 0;
    LOOP: setp.eq.u32 %p1, %r5, 1; @%p1 bra DONE;
    and.b32 %r7, %r5, 1; setp.ne.s32 %p2, %r7, 0; @%p2 bra ODD;
    shr.u32 %r5, %r5, 1; bra.uni NEXT;
    ODD: mad.lo.u32 %r5, %r5, 3, 1;
    NEXT: add.u32 %r6, %r6, 1; bra LOOP;
    DONE: bar.sync 0;
    @%p2 add.u32 %r6, %r6, 0; @!%p1 mov.u32 %r6, 7;
    """ + GIVE
    numbers = np.arange(2, 130)  # but for 1, which leaves %p2 unwritten
    assert list(run_body(body, numbers, blocks=2)) == [collatz_steps(int(n)) for n in numbers]


@pytest.mark.parametrize(
    ("way", "by", "bounds", "source"),
    [
        ("bfly", 5, 31, lambda lane: lane ^ 5),
        ("down", 3, 31, lambda lane: lane + 3 if lane + 3 < 32 else lane),
        ("up", 3, 0, lambda lane: lane - 3 if lane >= 3 else lane),
        ("idx", 9, 31, lambda lane: 9),
        ("down", 1, 32 - 8 << 8 | 31, lambda lane: lane + 1 if lane % 8 < 7 else lane),  # within eight lanes
    ],
)
def test_lanes_exchange_as_the_isa_says(way, by, bounds, source):
    body = TAKE + f"shfl.sync.{way}.b32 %r6|%p1, %r5, {by}, {bounds}, -1; selp.u32 %r7, 1, 0, %p1; @!%p1 shl.b32 %r6, %r6, 1;" + GIVE
    got = run_body(body, NUMBERS[:64])
    for thread, value in enumerate(got):
        lane = thread % 32
        expected = int(NUMBERS[thread - lane + source(lane)])
        is_there = source(lane) != lane or way == "idx"
        assert value == (expected if is_there else expected * 2 & 0xFFFFFFFF), thread


def test_lanes_wait_for_those_that_come_later():
    body = TAKE + """
    mov.u32 %r8, %r5; setp.lt.u32 %p1, %r1, 7; @%p1 bra LATE;
    JOIN: shfl.sync.bfly.b32 %r6, %r8, 1, 31, -1;
    bra END;
    LATE: add.u32 %r8, %r8, 1; bra JOIN;
    END: """ + GIVE.strip()
    changed = NUMBERS[:64] + (np.arange(64) < 7).astype(np.uint32)
    assert (run_body(body, NUMBERS[:64]) == changed[np.arange(64) ^ 1]).all()


def test_loads_and_stores_have_every_width():
    body = """
    and.b32 %r20, %r1, 3; setp.ne.s32 %p1, %r20, 0; @%p1 bra END;
    ld.global.nc.v4.u32 {%r5, %r6, %r7, %r8}, [%rd4];
    mov.b32 {%rs1, %rs2}, %r6; ld.global.u8 %rs3, [%rd4]; ld.global.s8 %rs4, [%rd4+1];
    st.global.v2.u32 [%rd5], {%r8, %r7}; st.global.v4.b16 [%rd5+8], {%rs1, %rs2, %rs3, %rs4};
    END:
    """
    got = run_body(body, NUMBERS[:32], threads=32).reshape(-1, 4)
    a, b, c, d = NUMBERS[:32].reshape(-1, 4).T
    signed = (a >> 8 & 255).astype(np.uint8).astype(np.int8).astype(np.int16).astype(np.uint16).astype(np.uint32)
    assert (got == np.stack([d, c, b, a & 255 | signed << 16], 1)).all()


def test_shared_memory_carries_across_a_barrier():
    body = TAKE + """
    st.shared.u32 [%rd8], %r5; bar.sync 0;
    shl.b32 %r20, %r1, 2; sub.s32 %r7, 252, %r20; cvt.u64.u32 %rd9, %r7; add.s64 %rd9, %rd9, %rd7; ld.shared.u32 %r6, [%rd9];
    """ + GIVE
    assert (run_body(body, NUMBERS, blocks=2).reshape(2, 64) == NUMBERS.reshape(2, 64)[:, ::-1]).all()


def from_thread(other_bits, wait):
    """Each thread's number from the thread whose number differs by these bits, through shared memory."""
    return TAKE + f"""
    st.shared.u32 [%rd8], %r5; {wait}
    xor.b32 %r7, %r1, {other_bits}; mul.wide.u32 %rd9, %r7, 4; add.s64 %rd9, %rd9, %rd7; ld.shared.u32 %r6, [%rd9];
    """ + GIVE


def test_a_warp_may_wait_for_itself_alone():
    wait = "bar.warp.sync -1;"
    assert (run_body(from_thread(1, wait), NUMBERS[:64]) == NUMBERS[np.arange(64) ^ 1]).all()
    with pytest.raises(PtxError, match="a race: no barrier between a load and thread 1's store"):
        run_body(from_thread(1, ""), NUMBERS[:64])
    with pytest.raises(PtxError, match="a race: no barrier between a load and thread 32's store"):
        run_body(from_thread(32, wait), NUMBERS[:64])


def test_registers_of_a_block_in_braces_are_its_own():
    body = TAKE + "mov.u32 %r6, 1;\n{ .reg .b32 %r6; add.u32 %r6, %r5, 1; mov.u32 %r5, %r6; }\nadd.u32 %r6, %r6, %r5;" + GIVE
    assert (run_body(body, NUMBERS[:64]) == NUMBERS[:64] + 2).all()


REFUSED = {
    "a register before it is written": (
        "add.u32 %r6, %r29, 1;",
        "the register %r29 is read before it is written, by thread 0 of block 0",
    ),
    "a register that some threads have not written": (
        "setp.lt.u32 %p1, %r1, 40; @%p1 mov.u32 %r6, 1;" + GIVE,
        "the register %r6 is read before it is written, by thread 40 of block 0",
    ),
    "shared memory before it is written": (
        "ld.shared.u32 %r6, [room];",
        "a load of what nobody has written: 4 bytes at byte 0 of room .256 bytes. of shared memory, thread 0",
    ),
    "a result before it is written": (
        "ld.global.u32 %r6, [%rd5];",
        "a load of what nobody has written: 4 bytes at byte 0 of out",
    ),
    "a load behind the end": (
        "ld.global.u32 %r6, [%rd4+4];",
        "an access out of bounds: 4 bytes at byte 256 of in .256 bytes. of global memory, thread 63 of block 0",
    ),
    "a load before the beginning": (
        "ld.global.u32 %r6, [%rd4+-4];",
        "an access out of bounds: 4 bytes at byte -4 of in",
    ),
    "a load of address 0": (
        "mov.u64 %rd9, 0; ld.global.u32 %r6, [%rd9];",
        "an access out of bounds: 4 bytes at",
    ),
    "a vector over the end": (
        "setp.eq.s32 %p1, %r1, 60; @%p1 ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd4+16];",
        "an access out of bounds: 16 bytes at byte 256 of in",
    ),
    "shared memory behind the end": (
        "st.shared.u32 [%rd8+4], %r1;",
        "an access out of bounds: 4 bytes at byte 256 of room",
    ),
    "a misaligned vector": (
        "ld.global.v2.u32 {%r5, %r6}, [%rd4];",
        "a misaligned load: 8 bytes at byte 4 of in .* thread 1 of block 0",
    ),
    "a store to an argument that is read": (
        "st.global.u32 [%rd4], %r1;",
        "a store to what may not change: 4 bytes at byte 0 of in",
    ),
    "two threads that store in one place": (
        "st.shared.u32 [room], %r1;",
        "a race: thread 63 stores there in the same instruction",
    ),
    "two warps that store in one place": (
        "and.b32 %r20, %r1, 31; setp.eq.s32 %p1, %r20, 0; @%p1 st.shared.u32 [room], %r1;",
        "a race: thread 32 stores there in the same instruction",
    ),
    "a store behind another thread's load": (
        "st.shared.u32 [%rd8], %r1; bar.sync 0; ld.shared.u32 %r6, [room]; setp.eq.s32 %p1, %r1, 0; @%p1 st.shared.u32 [room], %r1;",
        "a race: no barrier between a store and thread",
    ),
    "a store behind a load of the other warp": (
        "st.shared.u32 [%rd8], %r1; bar.sync 0; setp.gt.u32 %p2, %r1, 31; @%p2 ld.shared.u32 %r6, [room]; bar.warp.sync -1;"
        "setp.eq.s32 %p1, %r1, 0; @%p1 st.shared.u32 [room], %r1;",
        "a race: no barrier between a store and thread 63's load",
    ),
    "blocks that store in one place": (
        "add.s64 %rd10, %rd2, %rd6; st.global.u32 [%rd10], %r1;",
        "a race: thread 64 stores there in the same instruction",
    ),
    "a cached load of what was written": (
        "st.global.u32 [%rd5], %r1; ld.global.nc.u32 %r6, [%rd5];",
        "a load of ld.global.nc, of what the kernel has written",
    ),
    "a barrier that some never reach": (
        "setp.lt.u32 %p1, %r1, 40; @%p1 bra END; bar.sync 0; END:",
        "bar.sync 0: 24 threads wait for others that are elsewhere or have ended, thread 40",
    ),
    "a barrier for each half": (
        "setp.lt.u32 %p1, %r1, 32; @%p1 bra OTHER; bar.sync 0; bra END; OTHER: bar.sync 0; END:",
        "32 threads wait for others",
    ),
    "an exchange that some never reach": (
        "setp.lt.u32 %p1, %r1, 40; @%p1 bra END; shfl.sync.bfly.b32 %r6, %r1, 1, 31, -1; END:",
        "24 threads wait for others",
    ),
    "a value of a lane that takes no part": (
        "setp.lt.u32 %p1, %r1, 4; @%p1 shfl.sync.bfly.b32 %r6, %r1, 8, 31, 15;",
        "a value of a lane that is not in the mask",
    ),
    "an endless loop": ("LOOP: bra LOOP;", "more than 1000 steps: it may never end"),
    "a division by 0": ("mov.u32 %r5, 0; div.u32 %r6, %r1, %r5;", "an integer is divided by 0"),
    "an opcode that is not known": (
        "frobnicate.f32 %f1, %f2;",
        "line 16: frobnicate.f32 %f1, %f2: the opcode frobnicate.f32 is not known: add `frobnicate` to tests/ptx/arithmetic.py",
    ),
    "a form that is not known": ("add.sat.s32 %r6, %r1, %r1;", "of the opcode `add` this form is not known: add.sat.s32"),
    "a form of a load that is not known": ("ld.local.u32 %r6, [%rd4];", "this form of a load or store is not known: ld.local.u32"),
    "a special register that is not known": ("mov.u32 %r6, %smid;", "the special register %smid is not known"),
    "a guard that is no register": ("@%q1 mov.u32 %r6, 1;", "%q1 is no register"),
    "too wide a number": ("mov.u64 %r6, %rd1;", "64 bits for the register %r6 of 32"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refuses(what, monkeypatch):
    monkeypatch.setattr("machine.MOST_STEPS", 1000)
    body, words = REFUSED[what]
    blocks = 2 if "blocks" in what else 1
    with pytest.raises(PtxError, match=words):
        run_body(body, NUMBERS[: 64 * blocks], blocks)


def test_a_result_that_is_not_written_is_refused():
    with pytest.raises(PtxError, match="out: 4 of 256 bytes are never written, byte 252 the first"):
        run_body("mov.u32 %r6, 1; setp.lt.u32 %p1, %r1, 63; @%p1" + GIVE, NUMBERS[:64])


def test_functions_are_refused():
    with pytest.raises(PtxError, match=r"functions that are called \(.func\)"):
        read_kernels(".version 9.0\n.func f()\n{\nret;\n}")
