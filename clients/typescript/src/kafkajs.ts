/**
 * `@onceward/client/kafkajs`: {@link eachMessageOnce} of `@onceward/client/kafka` with the types of `kafkajs`, which has had
 * no stable release since February 2023. New consumers use `@onceward/client/kafka`.
 *
 * @module
 */

import type { EachMessagePayload } from "kafkajs";
import { eachMessageOnce as eachKafkaMessageOnce, type KafkaOptions } from "./kafka.ts";

export type { DeadLetterOptions } from "./consumers/dead-letter.ts";
export type { Delivery } from "./consumers/delivery.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { deadLetterTo, KEY_HEADER, readJson, type TopicProducer, withKey } from "./kafka.ts";

/** How a message is handled. Kafka has no dead-letter queues of its own: `deadLetterTo` sends to a topic. */
export type EachMessageOptions = KafkaOptions<EachMessagePayload>;

/**
 * `eachMessageOnce` of `@onceward/client/kafka` for KafkaJS. `waitMs` (10 s by default) has to stay well below KafkaJS'
 * session timeout of 30 s.
 */
export const eachMessageOnce = eachKafkaMessageOnce<EachMessagePayload>;
