// A network on ONNX Runtime from C++, by its C interface; the position of evaluate.mjs. The library comes with the npm
// package onnxruntime-node, library and headers with ONNX Runtime's releases:
//
//   LIB=node_modules/onnxruntime-node/bin/napi-v6/linux/x64
//   g++ -std=c++17 evaluate.cpp -I HEADERS $LIB/libonnxruntime.so.1 -Wl,-rpath,$LIB -o evaluate
//   ./evaluate b6c96.onnx
#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static const OrtApi* ort = OrtGetApiBase()->GetApi(17);  // the interface of ONNX Runtime 1.17, which later ones keep

static void check(OrtStatus* status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "%s\n", ort->GetErrorMessage(status));
  std::exit(1);
}

static OrtValue* tensor(std::vector<float>& data, std::vector<int64_t> shape) {
  OrtMemoryInfo* memory;
  check(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  OrtValue* value;
  check(ort->CreateTensorWithDataAsOrtValue(memory, data.data(), data.size() * sizeof(float), shape.data(), shape.size(),
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  ort->ReleaseMemoryInfo(memory);
  return value;
}

int main(int, char** arguments) {
  const int size = 9, points = size * size;
  OrtEnv* env;
  OrtSessionOptions* options;
  OrtSession* session;
  check(ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "keima", &env));
  check(ort->CreateSessionOptions(&options));
  check(ort->CreateSession(env, arguments[1], options, &session));

  std::vector<float> planes(22 * points), globals(19);
  std::fill_n(planes.begin(), points, 1.0f);  // plane 0: the board
  globals[5] = -7.5f / 20;                    // komi, for the side to move
  globals[18] = -0.5f;                        // where komi stands in the wave between two scores that can be
  const OrtValue* inputs[] = {tensor(planes, {1, 22, size, size}), tensor(globals, {1, 19})};
  const char* input_names[] = {"planes", "globals"};
  const char* output_names[] = {"policy", "value", "score"};
  OrtValue* outputs[3] = {};
  check(ort->Run(session, nullptr, input_names, inputs, 2, output_names, 3, outputs));

  float *policy, *value, *score;
  check(ort->GetTensorMutableData(outputs[0], reinterpret_cast<void**>(&policy)));
  check(ort->GetTensorMutableData(outputs[1], reinterpret_cast<void**>(&value)));
  check(ort->GetTensorMutableData(outputs[2], reinterpret_cast<void**>(&score)));
  const int best = static_cast<int>(std::max_element(policy, policy + points + 1) - policy);  // the last is the pass
  const float win = std::exp(value[0]), loss = std::exp(value[1]);
  if (best == points)
    std::printf("best pass");
  else
    std::printf("best %c%d", "ABCDEFGHJ"[best % size], size - best / size);
  std::printf(" logit %.4f win %.4f lead %.3f\n", policy[best], win / (win + loss), 20 * score[2]);
}
