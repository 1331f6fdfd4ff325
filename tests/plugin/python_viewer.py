"""Drives MuJoCo's own viewer for Python, with the plugin in it, on a virtual display.

    python_viewer.py PLUGIN MODEL

Plays, pauses, resets, goes back in time, opens the model again; looks at the window between. Ends
with an AssertionError, or prints the frame rate of the window.
"""
import atexit
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time

import numpy


class Display:
  """A virtual screen whose pixels lie in a file."""

  def __init__(self):
    self.folder = tempfile.TemporaryDirectory()
    ready, write = os.pipe()
    self.server = subprocess.Popen(
        ['Xvfb', '-displayfd', str(write), '-screen', '0', '1024x768x24', '-fbdir',
         self.folder.name], pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(ready) as pipe:
      os.environ['DISPLAY'] = ':' + pipe.readline().strip()
    atexit.register(self.close)  # before the viewer's own, so that it comes after it

  def pixels(self):
    """(height, width, 3), red first."""
    with open(os.path.join(self.folder.name, 'Xvfb_screen0'), 'rb') as file:
      data = file.read()
    header = struct.unpack('>25I', data[:100])  # X window dump
    size, width, height, row, colours = header[0], header[4], header[5], header[12], header[19]
    begin = size + 12 * colours
    raw = numpy.frombuffer(data, numpy.uint8, row * height, begin).reshape(height, row)
    return raw[:, :4 * width].reshape(height, width, 4)[:, :, 2::-1].astype(int)

  def close(self):
    self.server.terminate()
    self.server.wait()
    self.folder.cleanup()


def trail_pixels(pixels):
  red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
  return int(((red > 150) & (green < 140) & (blue < 90) & (red - green > 70)).sum())


def main():
  plugin, path = sys.argv[1:]
  display = Display()
  import mujoco  # takes the display that is there now
  import mujoco.viewer
  mujoco.mj_loadPluginLibrary(plugin)
  model = mujoco.MjModel.from_xml_path(path)
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, 0)
  everything = mujoco.mjtState.mjSTATE_INTEGRATION
  with mujoco.viewer.launch_passive(model, data, show_left_ui=False, show_right_ui=False) as viewer:
    viewer.cam.type = mujoco.mjtCamera.mjCAMERA_FIXED
    viewer.cam.fixedcamid = 0

    def play(steps):
      for _ in range(steps):
        mujoco.mj_step(model, data)
        viewer.sync()
      time.sleep(1)
      return display.pixels()

    start = time.monotonic()
    shown = play(100)
    assert shown.std() > 10, 'a blank window'
    assert trail_pixels(shown) > 30, 'no trail'
    assert data.sensor('policy_decisions').data[0] == 2
    rate = 100 / (time.monotonic() - start - 1)
    state = numpy.zeros(mujoco.mj_stateSize(model, everything))
    mujoco.mj_getState(model, data, state, everything)
    for _ in range(20):  # paused
      mujoco.mj_forward(model, data)
      viewer.sync()
    assert data.sensor('policy_decisions').data[0] == 2
    play(120)
    end = data.qpos.copy()
    mujoco.mj_setState(model, data, state, everything)  # back in time
    play(120)
    assert (data.qpos == end).all(), 'another way from the same state'
    mujoco.mj_resetData(model, data)
    shown = play(30)
    assert data.sensor('policy_decisions').data[0] == 1
    assert viewer.is_running()
  settled = 0
  for i in range(100):
    again = mujoco.MjModel.from_xml_path(path)
    mujoco.mj_step(again, mujoco.MjData(again))
    if i == 20:
      settled = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - settled
  assert grown < 20000, f'{grown} KiB more after 80 loads'
  print(f'{rate:.0f} synchronised steps per second')


main()
