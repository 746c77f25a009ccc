/** One small note beside the pointer, for the whole page. What it says must also be reachable without a pointer. */

class Tip {
  lines = $state.raw<string[]>([]);
  x = $state(0);
  y = $state(0);

  show(x: number, y: number, ...lines: string[]): void {
    this.x = x;
    this.y = y;
    this.lines = lines;
  }

  hide(): void {
    if (this.lines.length) this.lines = [];
  }
}

export const tip = new Tip();
