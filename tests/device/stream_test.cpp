#include "device/stream.h"

#include "fake_device_test.h"

namespace tilewright::device {
namespace {

using abi::CUresult;
using ::testing::AllOf;
using ::testing::HasSubstr;

using StreamTest = FakeDeviceTest;

const fake::Object& object_of(const fake::State& state, const Stream& stream) {
  return state.objects.at(reinterpret_cast<std::uint64_t>(stream.handle()));
}

TEST_F(StreamTest, StreamsDoNotBlockOnTheDefaultStream) {
  const Stream stream(open());
  EXPECT_EQ(object_of(state(), stream).flags,
            static_cast<unsigned>(abi::CUstream_flags::kNonBlocking));
}

TEST_F(StreamTest, Priorities) {
  const Device device = open();
  const Stream normal(device);
  const Stream high(device, Stream::Priority::kHighest);
  EXPECT_EQ(object_of(state(), normal).priority, 0);
  EXPECT_EQ(object_of(state(), high).priority, -5);  // smaller is more urgent
}

TEST_F(StreamTest, LentStreamsAreUsedButNotDestroyed) {
  const Device device = open();
  const Stream owner(device);
  {
    const Stream lent = Stream::lent(device, owner.handle());
    EXPECT_EQ(lent.handle(), owner.handle());
    lent.synchronize();
  }
  EXPECT_EQ(state().count("cuStreamDestroy_v2"), 0u);
  owner.synchronize();
  EXPECT_EQ(Stream::lent(device, nullptr).handle(), nullptr);
}

TEST_F(StreamTest, MovedStreamsAreDestroyedOnce) {
  {
    const Device device = open();
    Stream stream(device);
    Stream moved = std::move(stream);
    Stream other(device);
    other = std::move(moved);
    other.synchronize();
  }
  EXPECT_EQ(state().count("cuStreamDestroy_v2"), 2u);
}

TEST_F(StreamTest, IdleOrNot) {
  const Stream stream(open());
  EXPECT_TRUE(stream.is_idle());
  fail_next("cuStreamQuery", CUresult::kNotReady);
  EXPECT_FALSE(stream.is_idle());
  fail_next("cuStreamQuery", CUresult::kLaunchFailed);
  EXPECT_THAT(error_of(ErrorKind::kDeviceError, [&] { stream.is_idle(); }),
              AllOf(HasSubstr("cuStreamQuery: CUDA_ERROR_LAUNCH_FAILED"), HasSubstr("cuda:0")));
}

TEST_F(StreamTest, TimeBetweenEvents) {
  const Device device = open();
  const Stream stream(device);
  const Event start(device);
  const Event middle(device);
  const Event end(device);
  start.record(stream);
  middle.record(stream);
  end.record(stream);
  end.synchronize();
  EXPECT_TRUE(end.is_reached());
  EXPECT_FLOAT_EQ(elapsed_ms(start, end), 2);  // the fake clock ticks once per event
  EXPECT_FLOAT_EQ(elapsed_ms(end, middle), -1);
  start.record(stream);  // again
  EXPECT_FLOAT_EQ(elapsed_ms(end, start), 1);
}

TEST_F(StreamTest, TimeWithoutRecordingOrTimingIsAnError) {
  const Device device = open();
  const Stream stream(device);
  const Event recorded(device);
  const Event fresh(device);
  const Event untimed(device, Event::Timing::kOff);
  recorded.record(stream);
  untimed.record(stream);
  for (const Event* other : {&fresh, &untimed}) {
    EXPECT_THAT(error_of(ErrorKind::kDeviceError, [&] { elapsed_ms(recorded, *other); }),
                AllOf(HasSubstr("cuEventElapsedTime: CUDA_ERROR_INVALID_HANDLE"),
                      HasSubstr("made with timing, recorded, and reached")));
  }
}

TEST_F(StreamTest, EventReachedOrNot) {
  const Event event(open());
  fail_next("cuEventQuery", CUresult::kNotReady);
  EXPECT_FALSE(event.is_reached());
  EXPECT_TRUE(event.is_reached());
}

TEST_F(StreamTest, WaitingForAnotherStream) {
  const Device device = open();
  const Stream first(device);
  const Stream second(device);
  const Event event(device, Event::Timing::kOff);
  event.record(first);
  second.wait_for(event);
  EXPECT_EQ(state().count("cuStreamWaitEvent"), 1u);
}

}  // namespace
}  // namespace tilewright::device
