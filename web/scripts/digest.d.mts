import type { Plugin } from 'vite';

export function files(folder: string): string[];
export function digest(folder: string, names: string[]): string;
export function source(): string[];
export function sealed(): Plugin;
