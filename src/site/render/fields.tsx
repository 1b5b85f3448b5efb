import { type Description, resolve, type Schema } from './description.ts';
import type { Html } from './layout.tsx';
import { renderInline } from './markdown.ts';
import { formatNumber } from '../../lib/text.ts';

/** Maximum depth of listed fields: a schema may contain itself. */
const MAX_DEPTH = 4;

interface Field {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** The fields of an object, of the objects in an array, or of all alternatives, with those of nested objects. Others have none. */
export function Fields({ api, schema, depth = 0 }: { api: Description; schema: Schema; depth?: number }): Html {
  const fields = fieldsOf(api, schema);
  if (fields.length === 0 || depth > MAX_DEPTH) return <></>;
  return (
    <dl class="fields">
      {fields.map((field) => (
        <FieldRow api={api} field={field} depth={depth} />
      ))}
    </dl>
  );
}

export function FieldRow({ api, field, depth = 0 }: { api: Description; field: Field; depth?: number }): Html {
  const { name, isRequired } = field;
  const { schema } = withoutNull(api, field.schema);
  const description = field.schema.description ?? schema.description;
  const inner = innerOf(api, schema);
  const limits = limitsOf(schema);
  const values = valuesOf(api, schema);
  return (
    <div>
      <dt>
        <code safe>{name}</code>{' '}
        <span class="type" safe>{`${typeOf(api, field.schema)}${limits && `, ${limits}`}`}</span>
        {isRequired && <span class="required">required</span>}
      </dt>
      <dd>
        {description !== undefined && <p>{renderInline(description)}</p>}
        {values.length > 0 && (
          <p class="values">
            {values.map((value) => (
              <code safe>{value}</code>
            ))}
          </p>
        )}
        {inner.length > 0 && depth < MAX_DEPTH && (
          <details>
            <summary>
              Fields of <code safe>{name}</code>
            </summary>
            {inner.map((each) => (
              <Fields api={api} schema={each} depth={depth + 1} />
            ))}
          </details>
        )}
      </dd>
    </div>
  );
}

function fieldsOf(api: Description, schema: Schema): Field[] {
  const { properties = {}, required = [], items, oneOf, anyOf } = resolve(api, schema);
  const variants = oneOf ?? anyOf;
  if (variants) return variants.flatMap((variant) => fieldsOf(api, variant));
  if (items) return fieldsOf(api, items);
  return Object.entries(properties).map(([name, property]) => ({
    name,
    schema: property,
    isRequired: required.includes(name),
  }));
}

/** Returns the schemas of objects within a value that have fields of their own. */
function innerOf(api: Description, schema: Schema): Schema[] {
  const { oneOf, anyOf, items, properties } = resolve(api, schema);
  const variants = oneOf ?? anyOf;
  if (variants) return variants.flatMap((variant) => innerOf(api, variant));
  if (items) return innerOf(api, items);
  return properties ? [schema] : [];
}

/** Splits a schema of `x or null` into `x` and whether it is nullable. */
function withoutNull(api: Description, schema: Schema): { schema: Schema; isNullable: boolean } {
  const resolved = resolve(api, schema);
  const variants = resolved.oneOf ?? resolved.anyOf ?? [];
  const others = variants.filter(({ type }) => type !== 'null');
  const [only] = others;
  if (only && others.length === 1 && variants.length === 2)
    return { schema: { ...resolve(api, only), ...description(schema) }, isNullable: true };
  if (others.length < variants.length) return { schema: { ...resolved, oneOf: others }, isNullable: true };
  const { type } = resolved;
  const isNullable = Array.isArray(type) && type.includes('null');
  return { schema: resolved, isNullable };
}

const description = (schema: Schema) => (schema.description === undefined ? {} : { description: schema.description });

/** Describes a type in words: `string`, `array of objects`, `string or null`. */
function typeOf(api: Description, schema: Schema): string {
  const inner = withoutNull(api, schema);
  const name = typeName(api, inner.schema);
  return inner.isNullable ? `${name} or null` : name;
}

function typeName(api: Description, schema: Schema): string {
  const { type, oneOf, anyOf, items, format, enum: values, const: only } = resolve(api, schema);
  const variants = oneOf ?? anyOf;
  if (variants) return [...new Set(variants.map((variant) => typeName(api, variant)))].join(' or ');
  if (items) return `array of ${plural(typeName(api, items))}`;
  if (format === 'date-time') return 'timestamp';
  const types = [type].flat().filter((each) => each !== undefined && each !== 'null');
  if (types.length > 0) return types.join(' or ');
  if (values || only !== undefined) return typeof (only ?? values?.[0]);
  return 'any';
}

const plural = (name: string): string => name.replaceAll(/(?<=\w)(?= or|$)/g, 's');

function limitsOf(schema: Schema): string {
  const { minLength = 0, maxLength, minItems = 0, maxItems, minimum, maximum } = schema;
  const limits = [
    maxLength !== undefined && `${range(minLength, maxLength)} characters`,
    maxItems !== undefined && `${range(minItems, maxItems)} items`,
    minimum !== undefined && maximum !== undefined && `${minimum} to ${formatNumber(maximum)}`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
  ];
  return limits.filter((limit) => limit !== false).join(', ');
}

const range = (min: number, max: number): string =>
  min === 0 ? `up to ${formatNumber(max)}` : `${min} to ${formatNumber(max)}`;

/** Returns the values of an enumeration, also of one in an array. */
function valuesOf(api: Description, schema: Schema): string[] {
  const { enum: values, items, const: only } = resolve(api, schema);
  if (only !== undefined) return [JSON.stringify(only)];
  if (items) return valuesOf(api, items);
  return (values ?? []).filter((value) => value !== null).map(String);
}
