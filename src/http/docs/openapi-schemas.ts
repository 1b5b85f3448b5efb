import { isDeepStrictEqual } from 'node:util';

type Json = Readonly<Record<string, unknown>>;

/** Keywords that only our validator supports. */
const VALIDATOR_KEYWORDS = ['x-rule', 'x-sliced'];
/** Keywords that describe one use of a schema. They remain beside the reference to an enumeration. */
const ANNOTATIONS = ['description', 'examples', 'default'];
/** Keywords that apply to values of one type. */
const TYPE_KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  string: ['minLength', 'maxLength', 'pattern', 'format', 'enum'],
  array: ['items', 'minItems', 'maxItems'],
  object: ['properties', 'required', 'additionalProperties'],
};

interface Event {
  readonly post: {
    readonly requestBody: { readonly content: { readonly 'application/json': { readonly schema: Json } } };
  };
}
export interface Describable {
  readonly paths: object;
  readonly webhooks: Readonly<Record<string, Event>>;
  readonly components: object;
}

/**
 * Rewrites the schemas of an API description for client generators, which support only a part of JSON Schema. It moves each
 * schema with a title to the components and refers to it, adds the type of each enumeration, and converts a schema of several
 * types into `oneOf`. Requests are validated with the original schemas.
 */
export function nameSchemas({ paths, webhooks, components, ...rest }: Describable) {
  const schemas = new Map<string, Json>();
  const described = { paths: rewrite(paths, schemas), webhooks: rewrite(webhooks, schemas) as typeof webhooks };
  return { ...rest, ...described, components: { ...components, schemas: Object.fromEntries([...schemas].sort()) } };
}

function rewrite(part: unknown, named: Map<string, Json>): unknown {
  if (Array.isArray(part)) return part.map((item) => rewrite(item, named));
  if (typeof part !== 'object' || part === null) return part;
  const entries = Object.entries(part)
    .filter(([key]) => !VALIDATOR_KEYWORDS.includes(key))
    .map(([key, value]) => [key, key === 'example' || key === 'examples' ? value : rewrite(value, named)] as const);
  const schema = addNull(addType(Object.fromEntries(entries)));
  return typeof schema['title'] === 'string' ? refer(schema['title'], schema, named) : oneOfTypes(schema);
}

function addType(schema: Json): Json {
  const values = schema['enum'];
  return Array.isArray(values) && !('type' in schema) ? { type: 'string', ...schema } : schema;
}

/** Converts `anyOf` of a schema and null into one schema with both types, or into `oneOf` if the schema has no single type. */
function addNull(schema: Json): Json {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || (anyOf[1] as Json)['type'] !== 'null') return schema;
  const [{ type, ...value }] = anyOf as [Json];
  if (typeof type !== 'string') return { ...rest, oneOf: anyOf };
  return { ...value, ...rest, type: [type, 'null'] };
}

function refer(title: string, schema: Json, named: Map<string, Json>): Json {
  const { enum: values, ...rest } = schema;
  if (!Array.isArray(values))
    return register(
      title,
      pick(schema, (key) => key !== 'title'),
      named,
    );
  const isNullable = values.includes(null);
  const reference = register(title, { type: 'string', enum: values.filter((value) => value !== null) }, named);
  const annotations = pick(rest, (key) => ANNOTATIONS.includes(key));
  return isNullable ? { oneOf: [reference, { type: 'null' }], ...annotations } : { ...reference, ...annotations };
}

function register(title: string, schema: Json, named: Map<string, Json>): Json {
  const registered = named.get(title);
  if (registered && !isDeepStrictEqual(registered, schema)) throw new Error(`two schemas are named ${title}`);
  named.set(title, schema);
  return { $ref: `#/components/schemas/${title}` };
}

function oneOfTypes(schema: Json): Json {
  const { type: types, ...rest } = schema;
  if (!Array.isArray(types) || types.filter((type) => type !== 'null').length < 2) return schema;
  const keywords = Object.values(TYPE_KEYWORDS).flat();
  const oneOf = (types as string[]).map((type) => ({
    type,
    ...pick(rest, (key) => TYPE_KEYWORDS[type]?.includes(key) ?? false),
  }));
  return { ...pick(rest, (key) => !keywords.includes(key)), oneOf };
}

function pick(schema: Json, isPicked: (key: string) => boolean): Json {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => isPicked(key)));
}
