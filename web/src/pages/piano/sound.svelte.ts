/** A piano made of sines, and the one way it is played: live, with the audio context's clock as the only clock, and offline, into a WAV file. */

import type { Note } from './piece.svelte';

const PARTIALS = 14;
const EVERY = 3; // semitones between two tones that are computed; those between are played a little faster or slower
const RATE = 24_000; // of the tones
const RELEASE = 0.14; // seconds in which the damper quietens a string
const LOUDNESS = 0.32;
const AHEAD = 0.7; // seconds that notes are given to the browser before they are due
const TICK = 120; // milliseconds between two looks
const LEAD = 0.12; // seconds from pressing Play to the first sound
const TAIL = 1.2;
const WAV_RATE = 44_100;
const LOUDEST = 0.89;

const hertz = (pitch: number): number => 440 * 2 ** ((pitch - 69) / 12);
/** Seconds in which a string falls silent: long in the bass. */
const decay = (pitch: number): number => Math.min(9, Math.max(0.6, 14 * 2 ** (-(pitch - 21) / 22)));
const base = (pitch: number): number => Math.round(pitch / EVERY) * EVERY;

const tones = new Map<number, Float32Array<ArrayBuffer>>();

/** One struck string, undamped: partials a little sharp, each dying away in its own time, and the hammer's thud. */
export function tone(pitch: number): Float32Array<ArrayBuffer> {
  const known = tones.get(pitch);
  if (known) return known;
  const samples = new Float32Array(Math.ceil(decay(pitch) * RATE));
  const stiff = 7e-5 * 2 ** ((pitch - 40) / 12);
  for (let n = 1; n <= PARTIALS; n++) {
    const sharp = hertz(pitch) * n * Math.sqrt(1 + stiff * n * n);
    if (sharp > 0.45 * RATE) break;
    const fall = (6.9 / decay(pitch)) * (1 + 0.25 * (n - 1));
    const weight = n ** -0.8 * (n === 7 ? 0.6 : 1);
    // A sine by turning a vector a little each sample, and two decays by shrinking them: no table, no call.
    const [turn, angle] = [(2 * Math.PI * sharp) / RATE, n];
    const [c, s] = [Math.cos(turn), Math.sin(turn)];
    const [quick, slow] = [Math.exp((-2.4 * fall) / RATE), Math.exp((-0.7 * fall) / RATE)];
    let [x, y, a, b] = [Math.cos(angle), Math.sin(angle), 0.7 * weight, 0.3 * weight];
    for (let i = 0; i < samples.length && a + b > 2e-5; i++) {
      samples[i]! += y * (a + b);
      [x, y] = [x * c - y * s, x * s + y * c];
      a *= quick;
      b *= slow;
    }
  }
  let noise = 1 + pitch;
  let smooth = 0;
  for (let i = 0; i < RATE / 20 && i < samples.length; i++) {
    noise = (noise * 16807) % 2147483647; // always the same thud
    smooth += ((noise / 1073741823.5 - 1) - smooth) * 0.2;
    samples[i]! += 0.5 * smooth * Math.exp((-90 * i) / RATE);
  }
  for (let i = 0; i < 48 && i < samples.length; i++) samples[i]! *= i / 48;
  for (let i = 0; i < 480; i++) samples[samples.length - 1 - i]! *= i / 480;
  tones.set(pitch, samples);
  return samples;
}

const buffers = new WeakMap<BaseAudioContext, Map<number, AudioBuffer>>();

function buffer(context: BaseAudioContext, pitch: number): AudioBuffer {
  const mine = buffers.get(context) ?? new Map<number, AudioBuffer>();
  buffers.set(context, mine);
  let found = mine.get(pitch);
  if (!found) {
    const samples = tone(pitch);
    found = context.createBuffer(1, samples.length, RATE);
    found.copyToChannel(samples, 0);
    mine.set(pitch, found);
  }
  return found;
}

/** A key goes down at a time of the context's clock; `lift` lets it come up. A harder blow is louder, and brighter. */
function strike(context: BaseAudioContext, into: AudioNode, pitch: number, velocity: number, at: number): { lift: (at: number) => void; stop: () => void } {
  const from = base(pitch);
  const source = context.createBufferSource();
  source.buffer = buffer(context, from);
  source.playbackRate.value = 2 ** ((pitch - from) / 12);
  const bright = context.createBiquadFilter();
  bright.type = 'lowpass';
  bright.frequency.value = Math.min(9_000, hertz(pitch) * (1.5 + 9 * (velocity / 127) ** 2) + 300);
  const gain = context.createGain();
  gain.gain.value = (velocity / 127) ** 1.6 * LOUDNESS;
  const side = context.createStereoPanner();
  side.pan.value = Math.max(-0.6, Math.min(0.6, (pitch - 64) / 60));
  source.connect(bright).connect(gain).connect(side).connect(into);
  source.onended = () => side.disconnect();
  source.start(at);
  return {
    lift: (end) => {
      gain.gain.setTargetAtTime(0, end, RELEASE / 4);
      source.stop(end + 2 * RELEASE);
    },
    stop: () => source.stop(),
  };
}

/** Plays a piece; `position` is where in it the sound is, by the clock of the sound itself. */
class Player {
  playing = $state(false);
  /** Seconds into the piece. While it plays, `now()` is exact. */
  at = $state(0);
  #context: AudioContext | null = null;
  #out: GainNode | null = null;
  #begun = 0;
  #from = 0;
  #next = 0;
  #notes: Note[] = [];
  #end = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  get clock(): number {
    return this.#context?.currentTime ?? 0;
  }

  /** The browser lets a page sound only after it was touched: call it from a click or a key. */
  #wake(): AudioContext {
    this.#context ??= new AudioContext({ latencyHint: 'interactive' });
    if (this.#context.state === 'suspended') void this.#context.resume();
    return this.#context;
  }

  /** Where in the piece the sound is that is heard now. */
  now(): number {
    if (!this.playing || !this.#context) return this.at;
    return Math.max(this.#from, Math.min(this.#end, this.#from + this.#context.currentTime - (this.#context.outputLatency || 0) - this.#begun));
  }

  play(notes: Note[], from: number, end: number): void {
    this.pause();
    const context = this.#wake();
    this.#out = context.createGain();
    this.#out.connect(context.destination);
    Object.assign(this, { playing: true, at: from });
    this.#notes = notes;
    this.#from = from;
    this.#end = end;
    this.#begun = context.currentTime + LEAD;
    this.#next = notes.findIndex((one) => one.start >= from);
    if (this.#next < 0) this.#next = notes.length;
    this.#timer = setInterval(() => this.#look(), TICK);
    this.#look();
  }

  pause(): void {
    if (!this.playing) return;
    this.at = this.now();
    this.playing = false;
    clearInterval(this.#timer);
    const [out, context] = [this.#out!, this.#context!];
    out.gain.setTargetAtTime(0, context.currentTime, 0.03);
    setTimeout(() => out.disconnect(), 300);
  }

  seek(to: number): void {
    const again = this.playing;
    const [notes, end] = [this.#notes, this.#end];
    this.pause();
    this.at = to;
    if (again) this.play(notes, to, end);
  }

  #look(): void {
    const context = this.#context!;
    const heard = context.currentTime - this.#begun + this.#from;
    for (; this.#next < this.#notes.length; this.#next++) {
      const note = this.#notes[this.#next]!;
      if (note.start > heard + AHEAD) break;
      const at = Math.max(context.currentTime, this.#begun + note.start - this.#from);
      strike(context, this.#out!, note.pitch, note.velocity, at).lift(at + Math.max(0.03, note.end - note.start));
    }
    this.at = this.now();
    if (this.at >= this.#end) this.pause();
  }

  /** A key under somebody's finger: sounds until it is let go. */
  hold(pitch: number, velocity: number): () => void {
    const context = this.#wake();
    const struck = strike(context, context.destination, pitch, velocity, context.currentTime);
    return () => struck.lift(context.currentTime);
  }
}

export const player = new Player();

/** The piece as sound, rendered by the same piano without a loudspeaker. */
export async function render(notes: Note[], end: number): Promise<AudioBuffer> {
  const context = new OfflineAudioContext(2, Math.ceil((end + TAIL) * WAV_RATE), WAV_RATE);
  for (const note of notes) strike(context, context.destination, note.pitch, note.velocity, note.start).lift(Math.max(note.start + 0.03, note.end));
  return context.startRendering();
}

/** A WAV file of 16 bits a sample, as loud as can be without clipping. */
export function wav(sound: AudioBuffer): Blob {
  const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
  let peak = 0;
  for (const channel of channels) for (const value of channel) peak = Math.max(peak, Math.abs(value));
  const gain = peak ? (LOUDEST * 32767) / peak : 0;
  const bytes = new DataView(new ArrayBuffer(44 + 2 * channels.length * sound.length));
  const words = (at: number, said: string): void => [...said].forEach((sign, i) => bytes.setUint8(at + i, sign.charCodeAt(0)));
  const size = 2 * channels.length;
  words(0, 'RIFF');
  bytes.setUint32(4, bytes.byteLength - 8, true);
  words(8, 'WAVEfmt ');
  bytes.setUint32(16, 16, true);
  bytes.setUint16(20, 1, true);
  bytes.setUint16(22, channels.length, true);
  bytes.setUint32(24, sound.sampleRate, true);
  bytes.setUint32(28, sound.sampleRate * size, true);
  bytes.setUint16(32, size, true);
  bytes.setUint16(34, 16, true);
  words(36, 'data');
  bytes.setUint32(40, bytes.byteLength - 44, true);
  let at = 44;
  for (let i = 0; i < sound.length; i++) for (const channel of channels) bytes.setInt16((at += 2) - 2, Math.round(gain * channel[i]!), true);
  return new Blob([bytes.buffer as ArrayBuffer], { type: 'audio/wav' });
}
