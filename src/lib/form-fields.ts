/** Fields of a form or a query: text, or several texts of one name. */
type FormFields = Record<string, string | string[]>;

/** Collects fields by name, in linear time: anyone can send as many fields of one name as fit in a body. */
export function collectFields(pairs: Iterable<readonly [name: string, value: string]>): FormFields {
  const fields = Object.create(null) as FormFields;
  for (const [name, value] of pairs) {
    const before = fields[name];
    if (before === undefined) fields[name] = value;
    else if (typeof before === 'string') fields[name] = [before, value];
    else before.push(value);
  }
  return fields;
}
