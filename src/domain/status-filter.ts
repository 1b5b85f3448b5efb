const CLASS = /^([1-5])xx$/;
const STATUS = /^[1-5]\d\d$/;

/** Parses a filter of HTTP statuses: `404` is one status, `4xx` a class. Returns undefined for other text. */
export function parseStatusFilter(text: string): { readonly min: number; readonly max: number } | undefined {
  const [, digit] = CLASS.exec(text) ?? [];
  if (digit !== undefined) return { min: Number(digit) * 100, max: Number(digit) * 100 + 99 };
  return STATUS.test(text) ? { min: Number(text), max: Number(text) } : undefined;
}
