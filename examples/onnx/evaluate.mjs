// A network on ONNX Runtime from Node: `npm install onnxruntime-node`, then `node evaluate.mjs b6c96.onnx`.
//
// The empty 9×9 board for Black, area scoring, komi 7.5, as KataGo's encoding has it (keima planes katago): plane 0 is
// the board. Boards of any size go into the same file. In a browser, onnxruntime-web takes the same calls.
import * as ort from "onnxruntime-node";

const size = 9, points = size * size, komi = 7.5;
const session = await ort.InferenceSession.create(process.argv[2], { logSeverityLevel: 3 });

const planes = new Float32Array(22 * points).fill(1, 0, points);
const globals = new Float32Array(19);
globals[5] = -komi / 20; // for the side to move
globals[18] = -0.5; // where komi stands in the wave between two scores that can be
const { policy, value, score } = await session.run({
  planes: new ort.Tensor("float32", planes, [1, 22, size, size]),
  globals: new ort.Tensor("float32", globals, [1, 19]),
});

const logits = Array.from(policy.data.slice(0, points + 1));
const best = logits.indexOf(Math.max(...logits));
const name = best === points ? "pass" : "ABCDEFGHJ"[best % size] + (size - Math.floor(best / size));
const [win, loss] = [value.data[0], value.data[1]].map(Math.exp);
console.log(`best ${name} logit ${logits[best].toFixed(4)} win ${(win / (win + loss)).toFixed(4)} lead ${(20 * score.data[2]).toFixed(3)}`);
