/** A stretch of the picture as a film: recorded by the browser itself while it plays. */

export const canRecord = (): boolean => typeof MediaRecorder !== 'undefined' && typeof HTMLCanvasElement.prototype.captureStream === 'function';

const KINDS = ['video/mp4;codecs=avc1', 'video/webm;codecs=vp9', 'video/webm'];
const FRAMES = 60;
const BITS = 8_000_000;

export class Clip {
  #recorder: MediaRecorder;
  #parts: Blob[] = [];

  constructor(canvas: HTMLCanvasElement) {
    const mimeType = KINDS.find((kind) => MediaRecorder.isTypeSupported(kind));
    this.#recorder = new MediaRecorder(canvas.captureStream(FRAMES), { mimeType, videoBitsPerSecond: BITS });
    this.#recorder.ondataavailable = ({ data }) => this.#parts.push(data);
    this.#recorder.start();
  }

  /** The film, and how its file name ends. */
  end(): Promise<{ film: Blob; ending: string }> {
    const recorder = this.#recorder;
    return new Promise((done) => {
      recorder.onstop = () => {
        recorder.stream.getTracks().forEach((track) => track.stop());
        const type = recorder.mimeType.split(';')[0] || 'video/webm';
        done({ film: new Blob(this.#parts, { type }), ending: type.endsWith('mp4') ? 'mp4' : 'webm' });
      };
      recorder.stop();
    });
  }
}
