// What a program says of an exception that nobody caught, and its exit code.

#include "tasks/evaluation/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string SaidOf(const std::function<int()>& body) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(mjp::app::RunProgram("program", body), 3);
  return testing::internal::GetCapturedStderr();
}

TEST(RunProgramTest, ALackOfMemoryIsASentenceWithoutAStack) {
  EXPECT_THAT(SaidOf([]() -> int { throw std::bad_alloc(); }),
              HasSubstr("there is no memory left"));
  EXPECT_THAT(SaidOf([]() -> int {
                throw std::runtime_error(
                    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
                    "allocate memory: you tried to allocate 20000000000000 bytes. Error code 12 "
                    "(Cannot allocate memory)\nframe #0: c10::ThrowEnforceNotMet");
              }),
              AllOf(HasSubstr("there is no memory left; ask for less"),
                    HasSubstr("20000000000000 bytes"), Not(HasSubstr("frame"))));
}

TEST(RunProgramTest, StacksOfLibrariesAreLeftOut) {
  EXPECT_EQ(SaidOf([]() -> int {
              throw std::runtime_error("shapes differ\nException raised from f\nframe #0: f");
            }),
            "program: error: shapes differ\n");
}

}  // namespace
