// The same on OpenVINO, whose Python package brings headers and libraries:
//
//   OV=$(python -c "import openvino; print(openvino.__path__[0])")
//   g++ -std=c++17 evaluate_openvino.cpp -I $OV/include $OV/libs/libopenvino.so.* -Wl,-rpath,$OV/libs -o evaluate_openvino
//   ./evaluate_openvino b6c96.onnx
#include <openvino/openvino.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

int main(int, char** arguments) {
  const size_t size = 9, points = size * size;
  ov::Core core;
  auto compiled = core.compile_model(arguments[1], "CPU", ov::hint::inference_precision(ov::element::f32));
  auto request = compiled.create_infer_request();

  ov::Tensor planes(ov::element::f32, {1, 22, size, size}), globals(ov::element::f32, {1, 19});
  std::fill_n(planes.data<float>(), planes.get_size(), 0.0f);
  std::fill_n(globals.data<float>(), globals.get_size(), 0.0f);
  std::fill_n(planes.data<float>(), points, 1.0f);  // plane 0: the board
  globals.data<float>()[5] = -7.5f / 20;            // komi, for the side to move
  globals.data<float>()[18] = -0.5f;                // where komi stands in the wave between two scores that can be
  request.set_tensor("planes", planes);
  request.set_tensor("globals", globals);
  request.infer();

  const float* policy = request.get_tensor("policy").data<float>();
  const float* value = request.get_tensor("value").data<float>();
  const float* score = request.get_tensor("score").data<float>();
  const size_t best = std::max_element(policy, policy + points + 1) - policy;  // the last is the pass
  const float win = std::exp(value[0]), loss = std::exp(value[1]);
  if (best == points)
    std::printf("best pass");
  else
    std::printf("best %c%zu", "ABCDEFGHJ"[best % size], size - best / size);
  std::printf(" logit %.4f win %.4f lead %.3f\n", policy[best], win / (win + loss), 20 * score[2]);
}
