"""Memory as kernels see it: which bytes exist, which have been written, and which thread touched them since the last barrier.

Global memory is one array of buffers with gaps between them; the shared memory of all blocks is another, a block behind the other.
"""
import numpy as np

from ptx_text import PtxError

EXISTS, HAS_VALUE, MAY_CHANGE = 1, 2, 4
NOBODY = -1


class Clock:
    """Counts accesses, and says since when a block's or a warp's threads have not waited for each other."""

    def __init__(self, threads_of_block, blocks):
        self.now = 1
        self.block_of = np.repeat(np.arange(blocks), threads_of_block)
        self.warp_of = np.arange(threads_of_block * blocks) // 32
        self.block_met = np.zeros(blocks, np.int64)
        self.warp_met = np.zeros(-(-threads_of_block * blocks // 32), np.int64)

    def meet(self, threads, is_block):
        self.now += 1
        self.warp_met[self.warp_of[threads]] = self.now
        if is_block:
            self.block_met[self.block_of[threads]] = self.now

    def not_ordered(self, threads, others, when):
        """Where what these others did then may as well happen after what these threads do now."""
        own_block, other_block = self.block_of[threads], self.block_of[others]
        same_warp = self.warp_of[threads] == self.warp_of[others]
        met = np.where(same_warp, self.warp_met[self.warp_of[threads]], self.block_met[own_block])
        return (others != NOBODY) & (others != threads) & ((own_block != other_block) | (when >= met))


class Memory:
    """Bytes, what may be done with them, and for each granule who last wrote and who read it. A granule is what the narrowest access touches."""

    def __init__(self, name, size, granule, clock):
        self.name, self.size, self.granule, self.clock = name, size, granule, clock
        room = -(-size // 32) * 32
        self.bytes, self.state = np.zeros(room, np.uint8), np.zeros(room, np.uint8)
        n = room // granule
        self.writer, self.written = np.full(n, NOBODY), np.zeros(n, np.int64)
        self.reader, self.read_at = np.full(n, NOBODY), np.zeros(n, np.int64)  # the last one
        self.lanes = np.zeros(n, np.uint32)  # those of its warp that have read since they last met
        self.other, self.other_at = np.full(n, NOBODY), np.zeros(n, np.int64)  # the last one of another warp

    def refuse(self, which, threads, places, bytes_at_once, words):
        i = int(np.argmax(which))
        block = self.clock.block_of[threads[i]]
        thread = threads[i] - np.searchsorted(self.clock.block_of, block)
        raise PtxError(f"{words}: {bytes_at_once} bytes at {self.where(int(places[i]))} of {self.name} memory, thread {thread} of block {block}")

    def where(self, place):
        return f"byte {place}"

    def demand(self, threads, places, size, at_once, bits, words):
        """Every byte of each access has these bits of state."""
        out = (places < 0) | (places > self.size - size)
        if out.any():
            self.refuse(out, threads, places, at_once, "an access out of bounds")
        wanted = np.frombuffer(bytes([bits]) * size, f"u{size}")[0]
        found = self.state.view(f"u{size}")[places // size] & wanted
        if (found != wanted).any():
            exists = np.frombuffer(bytes([EXISTS]) * size, f"u{size}")[0]
            lost = (found & exists) != exists
            self.refuse(lost if lost.any() else found != wanted, threads, places, at_once, "an access out of bounds" if lost.any() else words)

    def begin(self, threads, places, size, parts, way):
        """Holds an access to its alignment."""
        bad = places % (size * parts) != 0
        if bad.any():
            self.refuse(bad, threads, places, size * parts, f"a misaligned {way}")
        self.clock.now += 1

    def granules(self, places, size):
        return [places // self.granule + i for i in range(size // self.granule)]

    def load(self, threads, places, size, parts=1, is_read_only=False):
        """Each part's numbers, as unsigned ones of `size` bytes."""
        self.begin(threads, places, size, parts, "load")
        loaded = []
        for part in range(parts):
            at = places + part * size
            self.demand(threads, at, size, size * parts, EXISTS | HAS_VALUE, "a load of what nobody has written")
            if (self.state[at] & MAY_CHANGE).any():
                self.note_read(threads, at, size, is_read_only)
            loaded.append(self.bytes.view(f"u{size}")[at // size])
        return loaded

    def note_read(self, threads, places, size, is_read_only):
        now, clock = self.clock.now, self.clock
        for granule in self.granules(places, size):
            if is_read_only and (self.writer[granule] != NOBODY).any():
                self.refuse(self.writer[granule] != NOBODY, threads, places, size, "a load of ld.global.nc, of what the kernel has written")
            races = clock.not_ordered(threads, self.writer[granule], self.written[granule])
            if races.any():
                self.refuse(races, threads, places, size, f"a race: no barrier between a load and thread {self.writer[granule][races][0]}'s store")
            last = self.reader[granule]
            warp = clock.warp_of[threads]
            is_same = (last != NOBODY) & (clock.warp_of[last] == warp)
            goes_on = is_same & (self.read_at[granule] >= clock.warp_met[warp])
            another = (last != NOBODY) & ~is_same
            self.other[granule[another]], self.other_at[granule[another]] = last[another], self.read_at[granule][another]
            self.lanes[granule[~goes_on]] = 0
            np.bitwise_or.at(self.lanes, granule, np.uint32(1) << (threads % 32).astype(np.uint32))
            self.reader[granule], self.read_at[granule] = threads, now
            mixed = clock.warp_of[self.reader[granule]] != warp  # several warps in one instruction
            self.other[granule[mixed]], self.other_at[granule[mixed]] = threads[mixed], now

    def store(self, threads, places, values, size, parts=1):
        self.begin(threads, places, size, parts, "store")
        for part in range(parts):
            at = places + part * size
            self.demand(threads, at, size, size * parts, EXISTS | MAY_CHANGE, "a store to what may not change")
            self.note_write(threads, at, size)
            self.bytes.view(f"u{size}")[at // size] = values[part]
            pattern = np.frombuffer(bytes([HAS_VALUE]) * size, f"u{size}")[0]
            self.state.view(f"u{size}")[at // size] |= pattern

    def note_write(self, threads, places, size):
        now, clock = self.clock.now, self.clock
        for granule in self.granules(places, size):
            self.refuse_race(threads, granule, places, size, self.writer, self.written, "store")
            reads_alone = self.lanes[granule] & ~(np.uint32(1) << (threads % 32).astype(np.uint32)) == 0
            own_warp = (self.reader[granule] != NOBODY) & (clock.warp_of[self.reader[granule]] == clock.warp_of[threads])
            races = ~own_warp & clock.not_ordered(threads, self.reader[granule], self.read_at[granule])
            races |= own_warp & ~reads_alone & (self.read_at[granule] >= clock.warp_met[clock.warp_of[threads]])
            if races.any():
                self.refuse(races, threads, places, size, f"a race: no barrier between a store and thread {self.reader[granule][races][0]}'s load")
            self.refuse_race(threads, granule, places, size, self.other, self.other_at, "load")
            self.writer[granule], self.written[granule] = threads, now
            twice = self.writer[granule] != threads
            if twice.any():
                self.refuse(twice, threads, places, size, f"a race: thread {self.writer[granule][twice][0]} stores there in the same instruction")

    def refuse_race(self, threads, granule, places, size, others, when, way):
        races = self.clock.not_ordered(threads, others[granule], when[granule])
        if races.any():
            self.refuse(races, threads, places, size, f"a race: no barrier between a store and thread {others[granule][races][0]}'s {way}")


class GlobalMemory(Memory):
    """Buffers at addresses that are no small numbers, each behind a gap."""

    BASE, GAP = 0x7F0000000000, 256

    def __init__(self, buffers, granule, clock):
        """`buffers`: (name, bytes of the data or their number, elements' bytes, bytes that the address is away from a multiple of 256)."""
        self.places, at = {}, self.GAP
        for name, data, _, shift in buffers:
            n = data if isinstance(data, int) else len(data)
            self.places[name] = (at + shift, n)
            at += -(-(shift + n) // self.GAP) * self.GAP + self.GAP
        super().__init__("global", at, granule, clock)
        self.begins = np.array([begin for begin, _ in self.places.values()])
        self.traffic = {}  # (load or store, bytes at once) -> bytes, a number a buffer
        for name, data, _, _ in buffers:
            begin, n = self.places[name]
            self.state[begin : begin + n] = EXISTS | MAY_CHANGE if isinstance(data, int) else EXISTS | HAS_VALUE
            if not isinstance(data, int):
                self.bytes[begin : begin + n] = np.frombuffer(data, np.uint8)

    def begin(self, threads, places, size, parts, way):
        super().begin(threads, places, size, parts, way)
        buffers = np.bincount(np.maximum(np.searchsorted(self.begins, places, "right") - 1, 0), minlength=len(self.begins))
        before = self.traffic.get((way, size * parts), 0)
        self.traffic[way, size * parts] = before + buffers * size * parts

    def traffic_of(self, name):
        """Bytes at once -> bytes that went so, of one buffer."""
        at = list(self.places).index(name)
        return {size: int(bytes_of[at]) for (_, size), bytes_of in self.traffic.items() if bytes_of[at]}

    def address(self, name):
        return self.BASE + self.places[name][0]

    def where(self, place):
        name = min(self.places, key=lambda each: max(self.places[each][0] - place, place - sum(self.places[each]), 0))
        return f"byte {place - self.places[name][0]} of {name} ({self.places[name][1]} bytes)"

    def result(self, name):
        """The bytes of a buffer that the kernel had to fill."""
        begin, n = self.places[name]
        missing = self.state[begin : begin + n] & HAS_VALUE == 0
        if missing.any():
            raise PtxError(f"{name}: {int(missing.sum())} of {n} bytes are never written, byte {int(np.argmax(missing))} the first")
        return self.bytes[begin : begin + n].tobytes()


class SharedMemory(Memory):
    """Each block's variables of shared memory, with gaps between them."""

    GAP = 16

    def __init__(self, variables, blocks, granule, clock):
        """`variables`: (name, bytes, alignment)."""
        self.offsets, at = {}, 0
        for name, size, align in variables:
            at = -(-at // max(align, 16)) * max(align, 16)
            self.offsets[name] = (at, size)
            at += size + self.GAP
        self.of_block = -(-at // 32) * 32
        super().__init__("shared", self.of_block * blocks, granule, clock)
        for block in range(blocks):
            for begin, size in self.offsets.values():
                self.state[block * self.of_block + begin :][:size] = EXISTS | MAY_CHANGE

    def place(self, threads, offsets):
        """Offsets that leave the block's part are out of all bounds."""
        return np.where((offsets >= 0) & (offsets < self.of_block), self.clock.block_of[threads] * self.of_block + offsets, -1)

    def where(self, place):
        offset = place % self.of_block
        name = min(self.offsets, key=lambda each: max(self.offsets[each][0] - offset, offset - sum(self.offsets[each]), 0))
        return f"byte {offset - self.offsets[name][0]} of {name} ({self.offsets[name][1]} bytes)"
