#include "device/graph.h"

#include "device/memory.h"
#include "fake_device_test.h"

#include <thread>

namespace tilewright::device {
namespace {

using abi::CUresult;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using GraphTest = FakeDeviceTest;

TEST_F(GraphTest, RecordsInsteadOfDoing) {
  const Device device = open();
  const Stream stream(device);
  Buffer buffer(device, 4);
  buffer.fill(std::byte{1});
  const Graph graph = Graph::capture(stream, [&] { buffer.fill_async(std::byte{2}, stream); });
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), ElementsAre(1, 1, 1, 1));
  for (int i = 0; i < 3; ++i) {
    buffer.fill(std::byte{1});
    graph.launch(stream);
    stream.synchronize();
    EXPECT_THAT(buffer.to_vector<std::uint8_t>(), ElementsAre(2, 2, 2, 2));
  }
}

TEST_F(GraphTest, KeepsTheParamsOfTheCapture) {
  int sum = 0;
  state().kernel_bodies["add"] = [&](const std::byte* params) {
    sum += static_cast<int>(params[0]);
  };
  const Device device = open();
  const Stream stream(device);
  const Kernel kernel = Module::from_ptx(device, "m", fake_ptx("add", 8)).kernel("add");
  std::uint64_t params = 5;
  const Graph graph = Graph::capture(stream, [&] {
    kernel.launch({}, params, stream);
    kernel.launch({}, params, stream);
  });
  params = 7;
  EXPECT_EQ(sum, 0);
  graph.launch(stream);
  EXPECT_EQ(sum, 10);
}

TEST_F(GraphTest, SaysWhatWasRecorded) {
  const Device device = open();
  const Stream stream(device);
  Buffer buffer(device, 4);
  const Kernel add = Module::from_ptx(device, "m", fake_ptx("add", 8)).kernel("add");
  const Module library = Module::from_ptx(device, "l", fake_ptx("of_library", 8));
  const Kernel other = library.kernel("of_library");
  const std::uint64_t params = 5;
  const Graph graph = Graph::capture(stream, [&] {
    add.launch({}, params, stream);
    buffer.fill_async(std::byte{1}, stream);
    other.launch({}, params, stream);
  });
  EXPECT_THAT(graph.nodes(), ElementsAre("add", "memset", "of_library"));
  EXPECT_THAT(Graph::capture(stream, [] {}).nodes(), ::testing::IsEmpty());
}

TEST_F(GraphTest, MayBeLaunchedOnAnotherStream) {
  const Device device = open();
  const Stream stream(device);
  Buffer buffer(device, 1);
  Graph graph = Graph::capture(stream, [&] { buffer.fill_async(std::byte{3}, stream); });
  const Graph moved = std::move(graph);
  moved.launch(Stream(device));
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), ElementsAre(3));
}

TEST_F(GraphTest, ExceptionsPassThroughAndEndTheCapture) {
  const Device device = open();
  const Stream stream(device);
  EXPECT_THROW(Graph::capture(stream, [&] { throw std::runtime_error("from the recording"); }),
               std::runtime_error);
  EXPECT_EQ(state().count("cuStreamEndCapture"), 1u);
  EXPECT_EQ(state().count("cuGraphDestroy"), 1u);
  EXPECT_NO_THROW(Graph::capture(stream, [] {}));  // the stream is usable again
}

TEST_F(GraphTest, ForbiddenCallsAreErrorsInsideACapture) {
  const Device device = open();
  const Stream stream(device);
  Buffer buffer(device, 16);
  const auto capture = [&](const std::function<void()>& record) {
    return error_of(ErrorKind::kDeviceError, [&] { Graph::capture(stream, record); });
  };
  EXPECT_THAT(capture([&] { Buffer(device, 16); }),
              AllOf(HasSubstr("cuMemAlloc: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
                    HasSubstr("Not allowed while a stream is captured")));
  EXPECT_THAT(capture([&] { stream.synchronize(); }), HasSubstr("cuStreamSynchronize"));
  EXPECT_THAT(capture([&] { buffer.fill(std::byte{0}); }),
              HasSubstr("cuMemsetD8: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"));
  // If the recording swallows the error, the end of the capture still reports it.
  EXPECT_THAT(capture([&] { EXPECT_THROW(stream.synchronize(), Error); }),
              HasSubstr("cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
}

TEST_F(GraphTest, OtherThreadsAreNotAffected) {
  const Device device = open();
  const Stream stream(device);
  Buffer buffer(device, 4);
  EXPECT_NO_THROW(Graph::capture(stream, [&] {
    std::thread([&] { Buffer(device, 64).fill(std::byte{1}); }).join();
    buffer.fill_async(std::byte{1}, stream);
  }));
}

TEST_F(GraphTest, FailedStepsLeaveNothingBehind) {
  const Device device = open();
  const Stream stream(device);
  for (const char* function : {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
                               "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
    fail_next(function, CUresult::kUnknown);
    const std::string message =
        error_of(ErrorKind::kDeviceError, [&] { Graph::capture(stream, [] {}).launch(stream); });
    EXPECT_THAT(std::string(function), HasSubstr(message.substr(0, message.find(':'))));
  }
  EXPECT_THAT(state().leaks(), ::testing::UnorderedElementsAre("stream", "primary context"));
}

}  // namespace
}  // namespace tilewright::device
