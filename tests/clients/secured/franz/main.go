// franz logs in by franz-go, creates a topic, an ACL and a quota, and copies records through the
// topic. Its argument is JSON: see tests/clients/secured.py.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type job struct {
	Bootstrap, CA, Mechanism, Username, Password, Token, Topic string
	Values                                                     []string
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func mechanism(j job) sasl.Mechanism {
	switch j.Mechanism {
	case "PLAIN":
		return plain.Auth{User: j.Username, Pass: j.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: j.Username, Pass: j.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: j.Username, Pass: j.Password}.AsSha512Mechanism()
	}
	return oauth.Auth{Token: j.Token}.AsMechanism()
}

func main() {
	var j job
	check(json.Unmarshal([]byte(os.Args[1]), &j))
	pem, err := os.ReadFile(j.CA)
	check(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(j.Bootstrap),
		kgo.DialTLSConfig(&tls.Config{RootCAs: trusted}),
		kgo.SASL(mechanism(j)),
		kgo.ConsumeTopics(j.Topic),
	)
	check(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(ctx, 1, 1, nil, j.Topic)
	check(err)
	administer(ctx, admin, j)
	for _, value := range j.Values {
		record := &kgo.Record{Topic: j.Topic, Value: []byte(value)}
		check(client.ProduceSync(ctx, record).FirstErr())
	}
	for read := 0; read < len(j.Values); {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value))
			read++
		})
	}
}

// administer adds a rule and a quota, and tells how many it finds.
func administer(ctx context.Context, admin *kadm.Client, j job) {
	rule := kadm.NewACLs().Topics(j.Topic).ResourcePatternType(kadm.ACLPatternLiteral).
		Operations(kadm.OpRead).Allow("User:franz").AllowHosts("*")
	_, err := admin.CreateACLs(ctx, rule)
	check(err)
	filter := kadm.NewACLs().Topics(j.Topic).ResourcePatternType(kadm.ACLPatternLiteral).
		Operations(kadm.OpRead).Allow("User:franz").AllowHosts("*")
	found, err := admin.DescribeACLs(ctx, filter)
	check(err)
	rules := 0
	for _, each := range found {
		check(each.Err)
		rules += len(each.Described)
	}
	name := "franz"
	entity := kadm.ClientQuotaEntity{{Type: "user", Name: &name}}
	ops := []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1e9}}
	altered, err := admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{Entity: entity, Ops: ops}})
	check(err)
	for _, each := range altered {
		check(each.Err)
	}
	match := []kadm.DescribeClientQuotaComponent{{Type: "user", MatchName: &name, MatchType: kmsg.QuotasMatchTypeExact}}
	quotas, err := admin.DescribeClientQuotas(ctx, true, match)
	check(err)
	fmt.Println(rules, "rules", len(quotas), "quotas")
}
