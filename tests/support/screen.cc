#include "tests/support/screen.h"

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace mjp_test {
namespace {

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

Window FindWindow(Display* display, Window parent, const std::string& title) {
  Window root, up, *children = nullptr, found = 0;
  unsigned count = 0;
  if (!XQueryTree(display, parent, &root, &up, &children, &count)) return 0;
  for (unsigned i = 0; i < count && !found; ++i) {
    char* name = nullptr;
    if (XFetchName(display, children[i], &name) && name &&
        std::string(name).find(title) != std::string::npos)
      found = children[i];
    if (name) XFree(name);
    if (!found) found = FindWindow(display, children[i], title);
  }
  if (children) XFree(children);
  return found;
}

}  // namespace

int Shot::TrailPixels() const {
  int count = 0;
  for (size_t i = 0; i < rgb.size(); i += 3) {
    const int red = rgb[i], green = rgb[i + 1], blue = rgb[i + 2];
    count += red > 150 && green < 140 && blue < 90 && red - green > 70;
  }
  return count;
}

double Shot::Spread() const {
  double sum = 0, squares = 0;
  for (const uint8_t byte : rgb) {
    sum += byte;
    squares += static_cast<double>(byte) * byte;
  }
  const double n = static_cast<double>(rgb.size());
  return std::sqrt(squares / n - sum / n * (sum / n));
}

std::unique_ptr<Screen> Screen::Start(int width, int height) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return nullptr;
  const pid_t server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const std::string size = std::to_string(width) + "x" + std::to_string(height) + "x24";
    const std::string fd = std::to_string(pipe_ends[1]);
    if (!freopen("/dev/null", "w", stderr)) _exit(127);
    execlp("Xvfb", "Xvfb", "-displayfd", fd.c_str(), "-screen", "0", size.c_str(), nullptr);
    _exit(127);
  }
  close(pipe_ends[1]);
  std::string name = ":";
  for (char c = 0; read(pipe_ends[0], &c, 1) == 1 && c != '\n';) name += c;
  close(pipe_ends[0]);
  // a window may be gone when it is sent something
  XSetErrorHandler([](Display*, XErrorEvent*) { return 0; });
  Display* display = name.size() < 2 ? nullptr : XOpenDisplay(name.c_str());
  if (display) return std::unique_ptr<Screen>(new Screen(server, name, display));
  kill(server, SIGTERM);
  waitpid(server, nullptr, 0);
  return nullptr;
}

Screen::~Screen() {
  XCloseDisplay(display_);
  kill(server_, SIGTERM);
  waitpid(server_, nullptr, 0);
}

bool Screen::Focus(const std::string& title, double seconds) {
  for (double waited = 0; waited < seconds; waited += 0.1) {
    window_ = FindWindow(display_, DefaultRootWindow(display_), title);
    XWindowAttributes attributes;
    if (window_ && XGetWindowAttributes(display_, window_, &attributes) &&
        attributes.map_state == IsViewable) {
      XMoveResizeWindow(display_, window_, 0, 0, DisplayWidth(display_, 0),
                        DisplayHeight(display_, 0));
      XSetInputFocus(display_, window_, RevertToParent, CurrentTime);
      Pause();
      return true;
    }
    Sleep(0.1);
  }
  return false;
}

std::pair<int, int> Screen::LeastSize() const {
  XSizeHints hints = {};
  long given = 0;
  if (!XGetWMNormalHints(display_, window_, &hints, &given) || !(hints.flags & PMinSize)) return {};
  return {hints.min_width, hints.min_height};
}

Shot Screen::Look(int x, int y, int width, int height) const {
  XImage* image =
      XGetImage(display_, DefaultRootWindow(display_), x, y, width, height, AllPlanes, ZPixmap);
  Shot shot{width, height, std::vector<uint8_t>(size_t{3} * width * height)};
  if (!image) return shot;
  for (int i = 0; i < width * height; ++i) {
    const unsigned long pixel = XGetPixel(image, i % width, i / width);
    for (int c = 0; c < 3; ++c) shot.rgb[3 * i + c] = static_cast<uint8_t>(pixel >> (16 - 8 * c));
  }
  XDestroyImage(image);
  return shot;
}

// Lets the window take in what was sent.
void Screen::Pause() const {
  XSync(display_, False);
  Sleep(pause_);
}

template <class Event>
void Screen::Send(Event& of_hand, int type, long mask, unsigned modifiers) {
  of_hand.type = type;
  of_hand.display = display_;
  of_hand.window = window_;
  of_hand.root = DefaultRootWindow(display_);
  of_hand.time = time_ += 50;
  of_hand.x = x_;
  of_hand.y = y_;
  of_hand.state = modifiers;
  of_hand.same_screen = True;
  XSendEvent(display_, window_, True, mask, reinterpret_cast<XEvent*>(&of_hand));
}

void Screen::SendKey(const char* keysym, bool down, unsigned modifiers) {
  XEvent event = {};
  event.xkey.keycode = XKeysymToKeycode(display_, XStringToKeysym(keysym));
  Send(event.xkey, down ? KeyPress : KeyRelease, down ? KeyPressMask : KeyReleaseMask, modifiers);
}

void Screen::HoldKey(const char* keysym, bool down, unsigned modifiers) {
  SendKey(keysym, down, modifiers);
  Pause();
}

void Screen::Key(const char* keysym, unsigned modifiers) {
  SendKey(keysym, true, modifiers);
  SendKey(keysym, false, modifiers);
  Pause();
}

void Screen::Move(int x, int y, unsigned modifiers) {
  x_ = x;
  y_ = y;
  XWarpPointer(display_, None, window_, 0, 0, 0, 0, x, y);
  XEvent event = {};
  Send(event.xmotion, MotionNotify, PointerMotionMask, modifiers);
  Pause();
}

void Screen::Button(unsigned button, bool down, unsigned modifiers) {
  XEvent event = {};
  event.xbutton.button = button;
  Send(event.xbutton, down ? ButtonPress : ButtonRelease,
       down ? ButtonPressMask : ButtonReleaseMask, modifiers);
  Pause();
}

void Screen::SendDrag(const char* type, const long (&data)[5]) {
  XEvent event = {};
  event.xclient.type = ClientMessage;
  event.xclient.display = display_;
  event.xclient.window = window_;
  event.xclient.message_type = XInternAtom(display_, type, False);
  event.xclient.format = 32;
  for (int i = 0; i < 5; ++i) event.xclient.data.l[i] = data[i];
  XSendEvent(display_, window_, False, NoEventMask, &event);
}

bool Screen::Drop(const std::string& path) {
  const auto atom = [this](const char* name) {
    return static_cast<long>(XInternAtom(display_, name, False));
  };
  if (!hand_)
    hand_ = XCreateSimpleWindow(display_, DefaultRootWindow(display_), 0, 0, 1, 1, 0, 0, 0);
  const long hand = static_cast<long>(hand_), version = 5l << 24, now = CurrentTime;
  XSetSelectionOwner(display_, atom("XdndSelection"), hand_, CurrentTime);
  SendDrag("XdndEnter", {hand, version, atom("text/uri-list"), 0, 0});
  SendDrag("XdndPosition", {hand, 0, (640l << 16) | 300, now, atom("XdndActionCopy")});
  SendDrag("XdndDrop", {hand, 0, now, 0, 0});
  const std::string uri = "file://" + path + "\r\n";
  for (int waited = 0; waited < 600; ++waited) {
    while (XPending(display_) > 0) {
      XEvent event;
      XNextEvent(display_, &event);
      if (event.type == ClientMessage &&
          static_cast<long>(event.xclient.message_type) == atom("XdndFinished")) {
        return true;
      }
      if (event.type != SelectionRequest) continue;
      const XSelectionRequestEvent& request = event.xselectionrequest;
      XChangeProperty(display_, request.requestor, request.property, request.target, 8,
                      PropModeReplace, reinterpret_cast<const unsigned char*>(uri.data()),
                      static_cast<int>(uri.size()));
      XEvent answer = {};
      answer.xselection = {SelectionNotify,
                           0,
                           True,
                           display_,
                           request.requestor,
                           request.selection,
                           request.target,
                           request.property,
                           request.time};
      XSendEvent(display_, request.requestor, False, NoEventMask, &answer);
    }
    XFlush(display_);
    Sleep(0.1);
  }
  return false;
}

double Screen::FrameRate(int x, int y, int width, int height, double seconds) const {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto begin = now();
  int frames = 0;
  Shot last = Look(x, y, width, height);
  while (std::chrono::duration<double>(now() - begin).count() < seconds) {
    Shot next = Look(x, y, width, height);
    if (next == last) continue;
    ++frames;
    last = std::move(next);
  }
  return frames / seconds;
}

void Screen::KeepPaceWith(double frame_rate) {
  pause_ = std::clamp(4 / std::max(frame_rate, 1.0), kPause, 2.0);
}

}  // namespace mjp_test
