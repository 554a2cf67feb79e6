// sarama logs in by sarama, creates a topic, and copies records through it. Its argument is JSON:
// see tests/clients/secured.py.
package main

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"os"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

type job struct {
	Bootstrap, CA, Mechanism, Username, Password, Token, Topic string
	Values                                                     []string
}

func (j job) token() *sarama.AccessToken { return &sarama.AccessToken{Token: j.Token} }

type provider struct{ job }

func (p provider) Token() (*sarama.AccessToken, error) { return p.job.token(), nil }

// scram is the client's half of RFC 5802: sarama leaves it to its user.
type scram struct {
	hash                  func() hash.Hash
	user, password, nonce string
	first                 string
	steps                 int
}

func (s *scram) Begin(user, password, _ string) error {
	random := make([]byte, 16)
	_, err := rand.Read(random)
	s.user, s.password, s.nonce = user, password, hex.EncodeToString(random)
	return err
}

func (s *scram) Done() bool { return s.steps == 3 }

func (s *scram) mac(key []byte, text string) []byte {
	made := hmac.New(s.hash, key)
	made.Write([]byte(text))
	return made.Sum(nil)
}

func (s *scram) Step(challenge string) (string, error) {
	s.steps++
	switch s.steps {
	case 1:
		s.first = "n=" + s.user + ",r=" + s.nonce
		return "n,," + s.first, nil
	case 2:
		fields := map[string]string{}
		for _, field := range strings.Split(challenge, ",") {
			fields[field[:1]] = field[2:]
		}
		salt, err := base64.StdEncoding.DecodeString(fields["s"])
		if err != nil {
			return "", err
		}
		iterations, err := strconv.Atoi(fields["i"])
		if err != nil {
			return "", err
		}
		salted, err := pbkdf2.Key(s.hash, s.password, salt, iterations, s.hash().Size())
		if err != nil {
			return "", err
		}
		key := s.mac(salted, "Client Key")
		stored := s.hash()
		stored.Write(key)
		last := "c=biws,r=" + fields["r"]
		signature := s.mac(stored.Sum(nil), s.first+","+challenge+","+last)
		for at := range key {
			key[at] ^= signature[at]
		}
		return last + ",p=" + base64.StdEncoding.EncodeToString(key), nil
	}
	return "", nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func config(j job) *sarama.Config {
	pem, err := os.ReadFile(j.CA)
	check(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	made := sarama.NewConfig()
	made.Version = sarama.MaxVersion
	made.Producer.Return.Successes = true
	made.Net.TLS.Enable = true
	made.Net.TLS.Config = &tls.Config{RootCAs: trusted}
	made.Net.SASL.Enable = true
	made.Net.SASL.Mechanism = sarama.SASLMechanism(j.Mechanism)
	made.Net.SASL.User, made.Net.SASL.Password = j.Username, j.Password
	made.Net.SASL.TokenProvider = provider{j}
	made.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		if j.Mechanism == sarama.SASLTypeSCRAMSHA256 {
			return &scram{hash: sha256.New}
		}
		return &scram{hash: sha512.New}
	}
	return made
}

func main() {
	var j job
	check(json.Unmarshal([]byte(os.Args[1]), &j))
	client, err := sarama.NewClient([]string{j.Bootstrap}, config(j))
	check(err)
	admin, err := sarama.NewClusterAdminFromClient(client)
	check(err)
	check(admin.CreateTopic(j.Topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	check(client.RefreshMetadata(j.Topic))
	producer, err := sarama.NewSyncProducerFromClient(client)
	check(err)
	for _, value := range j.Values {
		_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: j.Topic, Value: sarama.StringEncoder(value)})
		check(err)
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	check(err)
	reading, err := consumer.ConsumePartition(j.Topic, 0, sarama.OffsetOldest)
	check(err)
	for range j.Values {
		fmt.Println(string((<-reading.Messages()).Value))
	}
}
