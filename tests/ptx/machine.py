"""Runs a kernel for a grid of threads: all that are at one instruction execute it together, those that are behind first.

Threads of a warp or a block that wait for each other wait here; what never comes is an error. So is reading a register that was not
written, and what memory.py refuses.
"""
import numpy as np

from instructions import access, make_step
from memory import Clock, GlobalMemory, SharedMemory
from ptx_text import SIZES, PtxError

MOST_STEPS = 2_000_000


class Program:
    """A kernel whose instructions are all known."""

    def __init__(self, kernel):
        self.kernel, self.steps = kernel, []
        for instruction in kernel.code:
            try:
                self.steps.append(make_step(instruction, kernel.labels))
            except PtxError as error:
                raise PtxError(f"{kernel.name}, line {instruction.line}: {instruction.text}: {error}") from error

    def granule(self, space):
        """Bytes of the narrowest access to a space."""
        accesses = [access(step.instruction.opcode) for step in self.steps if step.instruction.opcode.startswith(("ld.", "st."))]
        return min([SIZES[kind] for each, _, kind, _ in accesses if each == space], default=8)


class Machine:
    def __init__(self, program, blocks, threads, arguments, buffers, shared_bytes=0):
        """`arguments`: one a parameter: bytes, the name of a buffer, or (name, bytes after its begin); `buffers`: GlobalMemory's."""
        self.program, self.blocks, self.threads, self.n = program, blocks, threads, blocks * threads
        if threads % 32 or not 0 < threads <= 1024 or blocks < 1:
            raise PtxError(f"no GPU of ours takes this grid: {blocks} blocks of {threads} threads")
        self.everyone = np.arange(self.n)
        self.thread_in_block, self.block = (self.everyone % threads).astype(np.uint32), (self.everyone // threads).astype(np.uint32)
        clock = Clock(threads, blocks)
        variables = program.kernel.variables.values()
        shared = [(v.name, v.size or shared_bytes, v.align) for v in variables if v.space == "shared"]
        constants = [(v.name, v.data, v.align, 0) for v in variables if v.space != "shared"]
        self.memory = {
            "global": GlobalMemory([*buffers, *constants], program.granule("global"), clock),
            "shared": SharedMemory(shared, blocks, program.granule("shared"), clock),
        }
        self.clock = clock
        self.arguments = self.bind(arguments)
        bits = {kind: np.dtype("?") if kind == "pred" else np.dtype(f"u{size}") for kind, size in SIZES.items()}
        self.values = {name: np.zeros(self.n, bits[kind]) for name, kind in program.kernel.registers.items()}
        self.known = {name: np.zeros(self.n, bool) for name in self.values}
        self.groups, self.waiting = {0: self.everyone}, {}
        self.executed, self.visited = 0, set()

    def bind(self, arguments):
        parameters = self.program.kernel.parameters
        if len(arguments) != len(parameters):
            raise PtxError(f"{self.program.kernel.name} takes {len(parameters)} arguments, and is given {len(arguments)}")
        bound = {}
        for (name, kind), argument in zip(parameters, arguments, strict=True):
            data = argument
            if not isinstance(argument, bytes):
                buffer, after = argument if isinstance(argument, tuple) else (argument, 0)
                data = (self.memory["global"].address(buffer) + after).to_bytes(8, "little")
            if len(data) != SIZES[kind]:
                raise PtxError(f"{name} is a {kind}, and is given {len(data)} bytes")
            bound[name] = data
        return bound

    # ---- What steps ask for

    def get(self, name):
        known = self.known.get(name)
        if known is not None and not known[self.where].all():
            thread = int(self.lanes[np.argmin(known[self.where])])
            raise PtxError(f"the register {name} is read before it is written, by thread {thread % self.threads} of block {thread // self.threads}")
        return self.values[name][self.where]

    def set(self, name, value):
        register = self.values[name]
        if value.dtype.itemsize < register.dtype.itemsize:  # sign or zeros
            bits = value.astype(np.int64) if value.dtype.kind == "i" else value.view(f"u{value.dtype.itemsize}")
            value = bits.astype(register.dtype)
        elif value.dtype.itemsize > register.dtype.itemsize:
            raise PtxError(f"{8 * value.dtype.itemsize} bits for the register {name} of {8 * register.dtype.itemsize}")
        register[self.where] = value.view(register.dtype)
        if len(self.lanes) == self.n:
            self.known.pop(name, None)
        elif name in self.known:
            self.known[name][self.where] = True

    def parameter(self, name, offset, dtype):
        return np.frombuffer(self.arguments[name], dtype, 1, offset)[0]

    def address_of(self, name):
        if name in self.memory["shared"].offsets:
            return self.memory["shared"].offsets[name][0]
        if name in self.memory["global"].places:
            return self.memory["global"].address(name)
        raise PtxError(f"there is no variable {name}")

    def place(self, space, addresses):
        if space == "shared":
            return self.memory["shared"].place(self.lanes, addresses)
        return addresses - GlobalMemory.BASE

    # ---- Threads

    def activate(self, lanes):
        self.lanes = lanes
        self.where = slice(None) if len(lanes) == self.n else lanes

    def put(self, at, lanes):
        if len(lanes):
            self.groups[at] = np.sort(np.concatenate([self.groups[at], lanes])) if at in self.groups else lanes

    def run(self):
        """Runs all threads to their end. Throws PtxError."""
        with np.errstate(all="ignore"):
            while self.groups:
                at = min(self.groups)
                self.activate(self.groups.pop(at))
                self.advance(at)
        for at, lanes in self.waiting.items():
            instruction = self.program.steps[at].instruction
            raise PtxError(
                f"{self.program.kernel.name}, line {instruction.line}: {instruction.text}: {len(lanes)} threads wait for others that are "
                f"elsewhere or have ended, thread {lanes[0] % self.threads} of block {lanes[0] // self.threads} the first"
            )

    def advance(self, at):
        """The threads at work, until they part, wait, end, or come to others."""
        limit = min(self.groups, default=len(self.program.steps))
        while at is not None:
            if at >= limit or at in self.groups:
                self.put(at, self.lanes)
                return
            step = self.program.steps[at]
            self.executed += 1
            self.visited.add(at)
            if self.executed > MOST_STEPS:
                raise PtxError(f"{self.program.kernel.name}: more than {MOST_STEPS} steps: it may never end")
            try:
                at = self.execute(step, at)
            except PtxError as error:
                raise PtxError(f"{self.program.kernel.name}, line {step.instruction.line}: {step.instruction.text}: {error}") from error

    def execute(self, step, at):
        """Where the threads go on; None: others are to be looked for."""
        lanes, rest = self.lanes, None
        if step.instruction.guard:
            takes = self.get(step.instruction.guard) != step.instruction.guard_is_negated
            n = np.count_nonzero(takes)
            if n == 0:
                return at + 1
            if n < len(lanes):
                rest, lanes = lanes[~takes], lanes[takes]
        if step.way == "":
            if rest is None:
                step.run(self)
                return at + 1
            everyone = self.lanes
            self.activate(lanes)
            step.run(self)
            self.activate(everyone)
            return at + 1
        if rest is not None:
            self.put(at + 1, rest)
            self.activate(lanes)
        if step.way == "branch":
            if rest is None:
                return step.target
            self.put(step.target, lanes)
        elif step.way in ("barrier", "warp"):
            self.meet(step, at)
        return None

    def meet(self, step, at):
        """Those whose others are all here go on together."""
        lanes = self.lanes
        if at in self.waiting:
            lanes = np.sort(np.concatenate([self.waiting.pop(at), lanes]))
            self.activate(lanes)
        complete = self.blocks_complete() if step.way == "barrier" else self.warps_complete(step.run[1](self))
        if not complete.all():
            self.waiting[at] = lanes[~complete]
        if not complete.any():
            return
        self.activate(lanes[complete])
        if step.way == "barrier":
            self.clock.meet(self.lanes, is_block=True)
        elif step.run[0] is None:
            self.clock.meet(self.lanes, is_block=False)
        else:
            step.run[0](self)
        self.put(at + 1, self.lanes)

    def blocks_complete(self):
        here = np.bincount(self.clock.block_of[self.lanes], minlength=self.blocks)
        return here[self.clock.block_of[self.lanes]] == self.threads

    def warps_complete(self, members):
        warps = self.clock.warp_of[self.lanes]
        here = np.bincount(warps, weights=2.0 ** (self.lanes % 32)).astype(np.uint64)
        return np.asarray(members).astype(np.uint64) & ~here[warps] == 0
