#ifndef TESTS_SUPPORT_SCREEN_H_
#define TESTS_SUPPORT_SCREEN_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct _XDisplay;  // Xlib's own header has macros that GoogleTest does not survive

namespace mjp_test {

// A rectangle of the screen as it looked: RGB, row 0 at the top.
struct Shot {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;
  bool operator==(const Shot&) const = default;

  // Pixels like the trail of the policy: orange to red.
  int TrailPixels() const;
  // Standard deviation of all bytes: 0 for a blank picture.
  double Spread() const;
};

// A virtual screen (Xvfb), and a hand that types and points on it.
class Screen {
 public:
  static constexpr unsigned kControl = 4;  // a modifier

  // Null where there is no Xvfb.
  static std::unique_ptr<Screen> Start(int width, int height);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  const std::string& name() const { return name_; }  // for DISPLAY
  // Waits for a window whose title contains this, lets it fill the screen and gives it
  // the keyboard.
  bool Focus(const std::string& title, double seconds);
  // Width and height that the window asks the system to keep at least; 0: it asks for nothing.
  std::pair<int, int> LeastSize() const;
  Shot Look(int x, int y, int width, int height) const;
  // Presses and releases a key ("space", "F1", "bracketright").
  void Key(const char* keysym, unsigned modifiers = 0);
  void HoldKey(const char* keysym, bool down, unsigned modifiers = 0);
  void Move(int x, int y, unsigned modifiers = 0);
  void Button(unsigned button, bool down, unsigned modifiers = 0);
  // Drops a file or folder on the window, as a file manager does (XDND 5). False if the window
  // did not take it.
  bool Drop(const std::string& path);
  // Pictures per second that a part of the screen shows, watched for some time.
  double FrameRate(int x, int y, int width, int height, double seconds) const;
  // From now on leaves the window the time of four of its frames after each event.
  void KeepPaceWith(double frame_rate);

 private:
  Screen(pid_t server, const std::string& name, _XDisplay* display)
      : server_(server), name_(name), display_(display) {}
  static constexpr double kPause = 0.15;
  void Pause() const;
  // Sends a key, a motion or a button, which are parts of an XEvent.
  template <class Event>
  void Send(Event& of_hand, int type, long mask, unsigned modifiers);
  void SendKey(const char* keysym, bool down, unsigned modifiers);
  void SendDrag(const char* type, const long (&data)[5]);

  pid_t server_;
  std::string name_;
  _XDisplay* display_;
  unsigned long window_ = 0;
  unsigned long hand_ = 0;  // a window of our own, where what is dropped comes from
  int x_ = 0, y_ = 0;
  unsigned long time_ = 1000;  // of events, milliseconds
  double pause_ = kPause;      // seconds between events
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_SCREEN_H_
