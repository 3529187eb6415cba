"""Small kernels in PTX by hand, for what the machine does and refuses."""
import numpy as np

from machine import Machine, Program
from ptx_text import read_kernels

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry small(.param .u64 p_in, .param .u64 p_out)
{
  .reg .pred %p<10>; .reg .b16 %rs<10>; .reg .b32 %r<30>; .reg .f32 %f<10>; .reg .b64 %rd<20>; .reg .f64 %fd<10>;
  .shared .align 16 .b8 room[256];
  ld.param.u64 %rd1, [p_in]; ld.param.u64 %rd2, [p_out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;  // where this thread's number is, and where it goes
  mul.wide.u32 %rd6, %r1, 4;
  mov.u64 %rd7, room;
  add.s64 %rd8, %rd7, %rd6;
"""


def run_body(body, numbers, blocks=1, threads=64, result_size=None):
    """The body ends with what each thread stores; returns u32 numbers, one a thread."""
    program = Program(read_kernels(HEAD + body + "\nret;\n}")["small"])
    numbers = np.asarray(numbers, np.uint32)
    buffers = [("in", numbers.tobytes(), 4, 0), ("out", 4 * blocks * threads if result_size is None else result_size, 4, 0)]
    machine = Machine(program, blocks, threads, ["in", "out"], buffers)
    machine.run()
    return np.frombuffer(machine.memory["global"].result("out"), np.uint32)
