/** Fine-tuning jobs as the server tells them, and where a loss curve's points are drawn. */

export interface Job {
  id: string;
  model: string;
  status: string;
  created_at: number;
  finished_at: number | null;
  steps: number | null;
  step: number;
  last_loss: number | null;
  result: string | null;
  error: string | null;
}

export interface Followed extends Job {
  /** Step and loss, in order. */
  loss: [number, number][];
  messages: { id: string; level: string; message: string; created_at: number }[];
}

const OPEN = new Set(['validating_files', 'queued', 'running']);
export const open = (job: Job): boolean => OPEN.has(job.status);
export const ends = (job: Job): boolean => open(job) || job.status === 'paused';

export const WIDTH = 640;
export const HEIGHT = 240;
const LEFT = 48;
const BOTTOM = 24;
const TOP = 8;

export interface Curve {
  points: string;
  last: [number, number];
  ticks: { y: number; loss: number }[];
  end: number;
  left: number;
  floor: number;
}

/** The loss from the first step to the last that is to come; the losses there are fill the height. */
export function curve(loss: [number, number][], steps: number | null): Curve | null {
  if (!loss.length) return null;
  const end = Math.max(steps ?? 0, loss[loss.length - 1]![0], 2);
  const losses = loss.map(([, one]) => one);
  const [low, high] = [Math.min(...losses), Math.max(...losses)];
  const span = high - low || 1;
  const x = (step: number): number => LEFT + ((step - 1) / (end - 1)) * (WIDTH - LEFT - 8);
  const y = (one: number): number => TOP + ((high - one) / span) * (HEIGHT - TOP - BOTTOM);
  const at = loss.map(([step, one]): [number, number] => [Math.round(10 * x(step)) / 10, Math.round(10 * y(one)) / 10]);
  const ticks = high === low ? [high] : [high, (high + low) / 2, low];
  return { points: at.map((one) => one.join(',')).join(' '), last: at[at.length - 1]!, ticks: ticks.map((one) => ({ y: y(one), loss: one })), end, left: LEFT, floor: HEIGHT - BOTTOM };
}
