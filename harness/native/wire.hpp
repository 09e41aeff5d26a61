// Names of the wire contract; docs/formats/wire.md says what they mean, and a test compares the two.
#pragma once

#include "standard.hpp"

namespace gate::wire {

inline constexpr int kProtocol = 2;

inline constexpr const char* kRequest = "request.json";
inline constexpr const char* kEvents = "events.jsonl";
inline constexpr const char* kStacks = "stacks.txt";
inline constexpr const char* kTensorsIndex = "tensors.jsonl";
inline constexpr const char* kTensorsBin = "tensors.bin";
inline constexpr const char* kOutputs = "outputs";
inline constexpr const char* kWork = "work";
inline constexpr const char* kWithHooksMethod = "__call__";

inline constexpr std::size_t kMostValues = 200'000;
inline constexpr std::size_t kLongestLineBytes = std::size_t{4} << 20;

inline constexpr int kExitRefused = 2;
inline constexpr int kExitOrphaned = 70;
inline constexpr int kExitBroken = 71;
inline constexpr int kExitStepsDone = 72;

inline constexpr const char* kInputs = "inputs";
inline constexpr const char* kBarrier = "barrier";
inline constexpr const char* kExit = "exit";
inline constexpr const char* kLoad = "load";
inline constexpr const char* kPrepare = "prepare";
inline constexpr const char* kCall = "call";
inline constexpr const char* kRecord = "record";
inline constexpr const char* kServe = "serve";
inline constexpr const char* kDrop = "drop";
inline constexpr const char* kCapture = "capture";
inline constexpr const char* kReplay = "replay";
inline constexpr const char* kBlock = "block";

inline constexpr long kBeatNs = 200'000'000;
inline constexpr long kPauseFactor = 2;
inline constexpr long kLeastPauseNs = 1'000'000;
inline constexpr long kMostPauseNs = 500'000'000;
inline constexpr int kExitWaitS = 1;

}  // namespace gate::wire
