import { Type } from 'typebox';
import { act } from '../act.ts';
import { Section } from '../elements.tsx';
import { field, Form, FormProblem, timeZoneField } from '../form-elements.tsx';
import { timeZoneOf, zonedInstant, zonedValue, zonedWords } from '../instants.ts';
import { action, type Context, type FormState, type Html, idOf, type Page, zoneOf } from '../page.ts';

interface Rescheduling {
  /** The name in the audit log. */
  readonly name: string;
  /** The path of the list of messages. */
  readonly list: string;
  /** Shows the page of the message with the problems of the form. */
  readonly renderForm: (context: Context, formState: FormState) => Promise<Html>;
  /** @param scheduledAt in the API's format */
  readonly reschedule: (context: Context, id: string, scheduledAt: string) => Promise<unknown>;
}

/** Returns the action of `RescheduleForm`. */
export function rescheduleAction({ name, list, renderForm, reschedule }: Rescheduling): Page<'members'> {
  return action(Type.Object({ scheduled_at: Type.String(), time_zone: Type.String() }), {
    renderForm,
    run: async (context, { scheduled_at: local, time_zone: zone }) => {
      const id = idOf(context);
      const timeZone = timeZoneOf(zone.trim());
      const scheduledAt = zonedInstant(local, timeZone, 'scheduled_at');
      return act(context, {
        action: name,
        run: () => reschedule(context, id, scheduledAt),
        target: id,
        detail: { scheduled_at: scheduledAt },
        next: `${list}/${id}`,
        flash: `Rescheduled to ${zonedWords(scheduledAt, timeZone)}.`,
      });
    },
  });
}

/** Returns the problem of a form that is not shown again, because its message is no longer scheduled; undefined for none. */
export function tooLateProblem(status: string, { problems }: FormState): string | undefined {
  if (status === 'scheduled' || Object.keys(problems).length === 0) return undefined;
  return 'It is no longer scheduled, so it was not rescheduled.';
}

interface FormProps {
  readonly context: Context;
  /** The path of the message. */
  readonly path: string;
  /** The current time, in the API's format. */
  readonly at: string;
  readonly formState: FormState;
}

/** A time field with the name of its time zone. */
export function RescheduleForm({ context, path, at, formState }: FormProps): Html {
  const timeZone = zoneOf(context);
  return (
    <Section title="Reschedule">
      <Form visit={context} action={`${path}/reschedule`} class="card">
        <FormProblem formState={formState} />
        {field(formState, 'scheduled_at', 'Send at', {
          type: 'datetime-local',
          value: zonedValue(at, timeZone),
          required: true,
        })}
        {timeZoneField(formState, timeZone, { hint: 'A name such as Europe/Berlin, or UTC.', required: true })}
        <button class="primary">Reschedule</button>
      </Form>
    </Section>
  );
}
