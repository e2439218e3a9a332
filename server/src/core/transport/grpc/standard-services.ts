import type { IncomingHttpHeaders } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { DescService } from "@bufbuild/protobuf";
import { Health as HealthService } from "../../../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import type { OutboundBudget } from "../memory-budgets.ts";
import type { Pipeline } from "../pipeline.ts";
import { Health } from "./health.ts";
import { forgetWhenClosed } from "./protocol.ts";
import { answerReflection, collectDescriptors } from "./reflection.ts";

/** The parts of a connection that gRPC's own services use. */
export interface StandardConnection {
  readonly pipeline: Pipeline;
  readonly outbound: OutboundBudget;
  readonly peer: string | undefined;
}

/** Answers a stream. */
export type AnswerStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** gRPC's own services: health, without a credential, and reflection, with one. */
export interface StandardServices {
  /** Sets the status of the server and of each service that `grpc.health.v1` reports. */
  setServing(serving: boolean): void;
  /** Returns a function that finds the answer to a path, for the streams of a connection. */
  ofConnection(connection: StandardConnection): (path: string) => AnswerStream | undefined;
}

/** @param services Those that health and reflection describe. */
export function createStandardServices(services: readonly DescService[]): StandardServices {
  const health = new Health(services.map(({ typeName }) => typeName));
  const descriptors = collectDescriptors([
    ...services,
    HealthService,
    ServerReflection,
    ServerReflectionAlpha,
  ]);
  return {
    setServing: (serving) => health.setServing(serving),
    ofConnection(connection) {
      const { outbound } = connection;
      const watches = new Set<ServerHttp2Stream>();
      const ofConnection = { ...connection, streams: new Set<ServerHttp2Stream>() };
      const reflect: AnswerStream = (stream, headers) =>
        answerReflection(stream, headers, descriptors, ofConnection);
      const answers = new Map<string, AnswerStream>([
        [`/${HealthService.typeName}/Check`, (stream) => health.check(stream, outbound)],
        [`/${HealthService.typeName}/List`, (stream) => health.list(stream, outbound)],
        [`/${HealthService.typeName}/Watch`, (stream) => health.watch(stream, watches)],
        [`/${ServerReflection.typeName}/ServerReflectionInfo`, reflect],
        [`/${ServerReflectionAlpha.typeName}/ServerReflectionInfo`, reflect],
      ]);
      return (path) => {
        const answer = answers.get(path);
        if (answer === undefined) return undefined;
        return (stream, headers) => {
          forgetWhenClosed(stream);
          answer(stream, headers);
        };
      };
    },
  };
}
